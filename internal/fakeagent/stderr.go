package fakeagent

import (
	"bytes"
	"context"
	"os"
	"time"
)

// complaint is what is written to standard error at a time: as much as a pipe
// holds, so that each one needs a reader.
const complaint = 64 << 10

// complaintInterval is the pause between two of them.
const complaintInterval = 20 * time.Millisecond

// complainUntil writes to standard error, whatever becomes of standard output,
// until the file exists. The call log has every complaint that was taken.
func (a *agent) complainUntil(file string) {
	text := append(bytes.Repeat([]byte{'.'}, complaint-1), '\n')
	for {
		there, err := exists(file)
		if err == nil && !there {
			_, err = os.Stderr.Write(text)
		}
		if err == nil && !there {
			err = a.calls.append(Call{Method: MethodComplaint})
		}
		if err == nil && !there {
			err = pause(context.Background(), complaintInterval)
		}
		if err != nil {
			os.Exit(1) // there is nobody left to tell
		}
		if there {
			return
		}
	}
}
