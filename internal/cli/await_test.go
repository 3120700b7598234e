package cli_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cli"
)

// TestAwait: a command that does not end when it is told to twice, because its
// disk hangs, is not waited for; one that ends soon is.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, abort := make(chan int, 1), make(chan struct{})
		close(abort)
		began := time.Now()
		if _, ended := cli.Await(code, abort); ended || time.Since(began) != cli.AbortTime {
			t.Errorf("Await() = %t after %v, want false after %v", ended, time.Since(began), cli.AbortTime)
		}
		go func() {
			time.Sleep(cli.AbortTime / 2) //nolint:forbidigo // fake time
			code <- 7
		}()
		if got, ended := cli.Await(code, abort); !ended || got != 7 {
			t.Errorf("Await() = %d, %t, want the code of the command", got, ended)
		}
	})
}
