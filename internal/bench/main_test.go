package bench_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/server"
)

// TestMain makes this binary the command livetree where a run starts it as that.
func TestMain(m *testing.M) {
	if os.Args[0] != "livetree" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := fmt.Errorf("the command %q is not expected here", os.Args)
	switch os.Args[1] {
	case "serve":
		err = serve(ctx, os.Args[2:])
	case "bench-peer":
		err = bench.Peer(ctx, os.Args[2:], os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is livetree serve with the flags that a run gives.
func serve(ctx context.Context, args []string) error {
	c := server.Config{DefaultDatabase: "default", Secret: os.Getenv("LIVETREE_SECRET"), Logger: slog.New(slog.DiscardHandler), Out: os.Stdout}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.StringVar(&c.Data, "data", "", "")
	flags.StringVar(&c.Addr, "addr", "", "")
	flags.StringVar(&c.AdminAddr, "admin-addr", "", "")
	flags.DurationVar(&c.KeepAlive, "keep-alive", 0, "")
	flags.DurationVar(&c.IdleTimeout, "idle-timeout", 0, "")
	flags.DurationVar(&c.DrainAccept, "drain-accept", 0, "")
	flags.DurationVar(&c.DrainRequests, "drain-requests", 0, "")
	flags.String("log-level", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return server.Run(ctx, c)
}

// small returns options of a run that is over soon, and the directory that it works
// in.
func small(t *testing.T, scenarios ...string) bench.Options {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Options{Executable: executable, Dir: t.TempDir(), Scenarios: scenarios, Rounds: 1, Requests: 40, Connections: 2}
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
