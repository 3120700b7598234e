package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/store"
)

// openFiles returns what the process has open below a directory, and how many
// sockets.
func openFiles(t *testing.T, below string) (files []string, sockets int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open files are NOT checked: %v", err)
	}
	for _, entry := range entries {
		name, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		switch {
		case err != nil: // that of the directory itself
		case strings.HasPrefix(name, below):
			files = append(files, name)
		case strings.HasPrefix(name, "socket:"):
			sockets++
		}
	}
	return files, sockets
}

// TestStartAndStopLeaveNothing: no goroutine, no file and no socket stays open
// behind a server that was used.
func TestStartAndStopLeaveNothing(t *testing.T) {
	data, ignore := t.TempDir(), goleak.IgnoreCurrent()
	_, socketsBefore := openFiles(t, data)
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) { useServer(t, data, socketsBefore) })
		http.DefaultClient.CloseIdleConnections()
		verifyNone(t, ignore)
		if files, _ := openFiles(t, data); len(files) > 0 {
			t.Errorf("round %d leaves open: %q", round, files)
		}
	}
	wait(t, "the sockets to be closed", func() bool {
		_, sockets := openFiles(t, data)
		return sockets <= socketsBefore
	})
}

// useServer starts a server, has it do a bit of everything, and stops it.
func useServer(t *testing.T, data string, socketsBefore int) {
	m := startManaged(t, data, func(c *Config) {
		c.Dev, c.HTTPAddr, c.AllowHTTP = true, "127.0.0.1:0", true
		c.Scrub = store.Scrub{Every: time.Hour, BytesPerSecond: 1 << 10}
	})
	if files, sockets := openFiles(t, data); len(files) == 0 || sockets <= socketsBefore {
		t.Fatalf("a server has %d files and %d sockets open: the test sees nothing", len(files), sockets)
	}
	for i := range 20 {
		m.wantData(200, "PUT", fmt.Sprintf("/a/%d.json?ns=db%d", i, i%3), "", `{"b":1}`)
	}
	stream := m.listen(false, "/a.json?ns=db0")
	m.wantData(200, "GET", "/a.json?ns=db0&shallow=true", "", "")
	m.want(200, "GET", "/metrics", "")
	m.want(200, "POST", "/v1/backup", fmt.Sprintf(`{"target":%q}`, filepath.Join(t.TempDir(), "backup")))
	m.stop()
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream of a server that stops ends with %v", err)
	}
}
