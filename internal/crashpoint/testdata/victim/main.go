// Command victim passes one crash point and says so.
package main

import (
	"fmt"

	"github.com/kandev/recovery/internal/crashpoint"
)

func main() {
	crashpoint.Hit("victim.here")
	fmt.Println("survived")
}
