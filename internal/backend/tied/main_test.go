package tied

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kandev/recovery/internal/stack/postgrestest"
)

func TestMain(m *testing.M) {
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}
