package manualcli_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/manualcli"
)

// docs runs livetree docs with these arguments.
func docs(ctx context.Context, out io.Writer, args ...string) error {
	c := manualcli.Surroundings{
		Takes:      func(...string) cobra.PositionalArgs { return cobra.ArbitraryArgs },
		Out:        func() io.Writer { return out },
		Err:        func() io.Writer { return out },
		Lookup:     func(string) (string, bool) { return "", false },
		IsTerminal: func(any) bool { return false },
		Version:    "v1",
	}.Command()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	return c.ExecuteContext(ctx)
}

// TestServe: the manual is served at the address that is printed, until the command is interrupted, and nothing of it is left.
func TestServe(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, interrupt := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- docs(ctx, write, "--serve", "127.0.0.1:0") }()
	line := make([]byte, 200)
	n, err := read.Read(line)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).Find(line[:n])
	if err != nil || url == nil {
		t.Fatalf("it prints %q, %v; want an address", line[:n], err)
	}
	for page, want := range map[string]string{"": "The Livetree manual", "rules.html": "<h1", "images/console-light.png": "PNG"} {
		resp, err := http.Get(string(url) + page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v, %.100q; want %q in it", page, resp.Status, err, text, want)
		}
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestServeToThisMachineAlone: other machines have no business there, and no site is written for a topic.
func TestServeToThisMachineAlone(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // or one that is served would not end
	for want, args := range map[string][]string{
		"to this machine alone": {"--serve", ":8080"},
		"such as 127.0.0.1:8":   {"--serve", "0.0.0.0:8080"},
		"name no topic":         {"rules", "--serve", "127.0.0.1:0"},
	} {
		if err := docs(ended, io.Discard, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("livetree docs %q: %v; want that it says %q", args, err, want)
		}
	}
}
