package store

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFatalThatReturns: a store must not go on when Options.Fatal does not end the
// process. The next write would look as if it were stored.
func TestFatalThatReturns(t *testing.T) {
	t.Parallel()
	const wanted = "panic: store: Options.Fatal returned"
	panics := 0
	for attempt := 0; panics < 3; attempt++ {
		if attempt == 40 {
			t.Fatalf("in %d attempts Options.Fatal was called %d times", attempt, panics)
		}
		sc := scenario{Operation: 60 + rand.IntN(150), Errno: syscall.EIO, Lasting: attempt%2 == 0, Returns: true}
		will := sc.run(t)
		if strings.Contains(will.text, wanted) {
			panics++
		}
		if will.exit == ExitIO {
			t.Errorf("%s: exit %d, but Options.Fatal does not exit", sc, will.exit)
		}
		if err := will.check(); err != nil {
			t.Errorf("%s%s: exit %d: %v", sc, will.fault, will.exit, err)
		}
	}
}

func TestFailPanicsWhenFatalReturns(t *testing.T) {
	told := &transcript{}
	var code int
	s := newStand(t, Options{Fatal: func(c int) { code = c }, Logger: told.logger()})
	defer func() {
		if recover() == nil {
			t.Error("the store goes on when Options.Fatal returns")
		}
		if code != ExitIO {
			t.Errorf("Options.Fatal was called with %d, want %d", code, ExitIO)
		}
		text := told.String()
		if strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "input/output error") || !strings.Contains(text, "000123.log") {
			t.Errorf("the operator was told %q, want one line with the file and the reason", text)
		}
	}()
	pebbleLogger{&s.health}.Fatalf("pebble: fatal commit error: %v", &os.PathError{Op: "sync", Path: "000123.log", Err: syscall.EIO})
}
