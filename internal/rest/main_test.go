package rest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/proof"
)

// TestMain runs the tests, and then looks whether one of them has left a goroutine behind. It cannot look after each: tests
// that wait for a client run side by side.
func TestMain(m *testing.M) {
	proof.SideBySide(8)
	code := m.Run()
	if err := awaitNone(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "the tests left goroutines behind:", err)
		code = 1
	}
	os.Exit(code)
}

// awaitNone waits until there are no goroutines but this one. By itself goleak waits for less than half a second.
func awaitNone() error {
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
