package bench_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/proof"
)

// TestMain makes this binary one of the processes of a run where a run starts it.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != bench.PeerArgument {
		proof.SideBySide(8)
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := bench.Peer(ctx, os.Args[2:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// small returns options of a run that is over soon, and the directory that it works
// in.
func small(t *testing.T, scenarios ...string) bench.Options {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Options{Executable: executable, Dir: t.TempDir(), Scenarios: scenarios, Rounds: 1, Requests: 40, Connections: 2,
		Records: bench.QuickRecords}
}

// expectEmpty fails if a run left something in its directory.
func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("a run leaves %v (%v), want nothing", left, err)
	}
}

// announced is closed when a server has said that it is ready; its text is where.
type announced struct {
	io.Writer
	text chan string
}

func (a announced) Write(p []byte) (int, error) {
	select {
	case a.text <- string(p):
	default:
	}
	return len(p), nil
}
