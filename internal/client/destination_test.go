//go:build unix

package client_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/client"
)

// An export must not put a file in the place of a device, a pipe or a link: whoever
// names /dev/full as root wants to write to it.
func TestExportReplacesFilesOnly(t *testing.T) {
	t.Parallel()
	c := startServer(t, "127.0.0.1:0").client(t)
	put(t, c, "/a", `{"b":1}`)
	dir := t.TempDir()
	export := func(name string) error {
		_, err := c.Export(t.Context(), client.Export{Path: "/a", File: filepath.Join(dir, name)})
		return err
	}

	t.Run("pipe", func(t *testing.T) {
		pipe := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Skipf("no pipes here: %v", err)
		}
		read := make(chan string, 1)
		go func() {
			text, err := os.ReadFile(pipe)
			read <- string(text) + errText(err)
		}()
		if err := export("pipe"); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			t.Fatalf("the pipe has become %v %v", info.Mode(), err)
		}
		if got := <-read; got != `{"b":1}` {
			t.Errorf("the pipe got %q", got)
		}
	})

	t.Run("link", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "old.json"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("old.json", filepath.Join(dir, "link.json")); err != nil {
			t.Fatal(err)
		}
		if err := export("link.json"); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "old.json")); string(text) != `{"b":1}` {
			t.Errorf("the file behind the link holds %q, %v", text, err)
		}
		if to, err := os.Readlink(filepath.Join(dir, "link.json")); to != "old.json" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
	})

	t.Run("directory", func(t *testing.T) {
		err := export(".")
		if client.ExitCode(err) != client.ExitFile || !strings.Contains(err.Error(), "is a directory") {
			t.Errorf("export to a directory: %v", err)
		}
	})
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestInterruptedExport(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"a":1,`))
		_ = http.NewResponseController(w).Flush()
		interrupt()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Export(ctx, client.Export{File: filepath.Join(t.TempDir(), "a.json")})
	if want := "interrupted; no file was written: run the command again"; err == nil || err.Error() != want {
		t.Errorf("an interrupted export says %q, want %q", err, want)
	}
	if client.ExitCode(err) != client.ExitInterrupted || !errors.Is(err, context.Canceled) {
		t.Errorf("its exit code is %d", client.ExitCode(err))
	}
}
