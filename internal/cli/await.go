package cli

import (
	"context"
	"errors"
	"os"
	"time"
)

// Heed returns a context that ends with the first signal, and what is closed at the second. The
// result must be called when the command is done.
func Heed(signals <-chan os.Signal) (ctx context.Context, abort <-chan struct{}, done func()) {
	ctx, stop := context.WithCancel(context.Background())
	aborted, ended := make(chan struct{}), make(chan struct{})
	go func() {
		for _, act := range []func(){stop, func() { close(aborted) }} {
			select {
			case <-signals:
				act()
			case <-ended:
				stop()
				return
			}
		}
	}()
	return ctx, aborted, func() { close(ended) }
}

// abortTime is how long a command may take after it was told to end at once. What it does then
// may hang with the disk, where nothing can interrupt it; what was acknowledged is safe there.
const abortTime = 2 * time.Second

// ErrHangs is told when a command does not end though it was told to twice.
var ErrHangs = errors.New("stopped by the second signal while something hangs, the disk perhaps; what was acknowledged is stored")

// Await returns the exit code of a command, or false if it hangs though abort is closed.
func Await(code <-chan int, abort <-chan struct{}) (int, bool) {
	select {
	case code := <-code:
		return code, true
	case <-abort:
	}
	select {
	case code := <-code:
		return code, true
	case <-time.After(abortTime):
		return 0, false
	}
}
