package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestDiskThatIsFull fills a real file system under a server with 16 writers, and
// makes room again. It needs the right to mount one, of a size at which the ballast and four logs
// leave as much free as writes need to go on.
func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes more than a gibibyte of memory")
	}
	mount := t.TempDir()
	if err := syscall.Mount("livetree-test", mount, "tmpfs", 0, "size=1300m,mode=0700"); err != nil {
		t.Skipf("a full disk is NOT tested: a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	const writers = 16
	p := startChild(t, filepath.Join(mount, "data"), "")
	w := startWriters(t, p, writers)
	w.waitFor("writes to be acknowledged", func() bool { return w.count(http.StatusOK) > 200 })

	filler := filepath.Join(mount, "filler")
	fillDisk(t, mount, filler)
	refused := w.count(http.StatusInsufficientStorage)
	w.waitFor("writes to be refused", func() bool { return w.count(http.StatusInsufficientStorage) > refused+50 })
	acknowledged := w.count(http.StatusOK)
	w.waitFor("more refusals", func() bool { return w.count(http.StatusInsufficientStorage) > refused+200 })
	// What was let in before ends with the space of the ballast.
	if now := w.count(http.StatusOK); now > acknowledged+writers {
		t.Errorf("%d writes were acknowledged on a full disk, want only those under way", now-acknowledged)
	}
	if got := p.get("/w/0/0.json"); got != "0" {
		t.Errorf("GET on a full disk: %s, want 0", got)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	acknowledged = w.count(http.StatusOK)
	w.waitFor("writes to go on", func() bool { return w.count(http.StatusOK) > acknowledged+200 })
	w.end()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, &p.stderr)
	}
	// Which comes first depends on when the store looks.
	log := p.stderr.String()
	if !strings.Contains(log, "the disk is nearly full") && !strings.Contains(log, "the disk is full") ||
		!strings.Contains(log, "there is enough space on the disk again") {
		t.Errorf("the log does not say how it went:\n%.3000s", log)
	}
	again := startChild(t, filepath.Join(mount, "data"), "")
	w.check(again)
	again.signal(syscall.SIGTERM)
	again.wait()
}

// fillDisk leaves no space on a file system.
func fillDisk(t *testing.T, mount, name string) {
	t.Helper()
	var usage syscall.Statfs_t
	if err := syscall.Statfs(mount, &usage); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The server is writing: what is free now may not be in a moment.
	for size, step := int64(0), int64(usage.Bavail)*int64(usage.Bsize); step >= int64(usage.Bsize); {
		if err := syscall.Fallocate(int(file.Fd()), 0, size, step); err != nil {
			step /= 2
			continue
		}
		size += step
	}
}

// writers write numbers below /w, each below a child of its own, and keep book.
type writers struct {
	t        *testing.T
	server   *childServer
	stop     atomic.Bool
	done     sync.WaitGroup
	statuses [600]atomic.Int64

	mu           sync.Mutex
	acknowledged []string // paths with their number
}

func startWriters(t *testing.T, server *childServer, n int) *writers {
	w := &writers{t: t, server: server}
	t.Cleanup(w.end)
	for writer := range n {
		w.done.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				w.write(fmt.Sprintf("/w/%d/%d.json", writer, i), fmt.Sprint(i))
			}
		})
	}
	return w
}

func (w *writers) write(path, body string) {
	status := w.server.put(path, body)
	w.statuses[status].Add(1)
	switch status {
	case http.StatusOK:
		w.mu.Lock()
		w.acknowledged = append(w.acknowledged, path+" "+body)
		w.mu.Unlock()
	case http.StatusInsufficientStorage, http.StatusServiceUnavailable:
	case 0: // unknown
	default:
		w.t.Errorf("PUT %s: %d", path, status)
		w.stop.Store(true)
	}
}

func (w *writers) count(status int) int64 { return w.statuses[status].Load() }

// waitFor waits longer than a write that is not confirmed.
func (w *writers) waitFor(what string, holds func() bool) {
	w.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("waited %v for %s: 200 x %d, 507 x %d, 503 x %d, none x %d", patience, what, w.count(200), w.count(507), w.count(503), w.count(0))
		}
	}
}

func (w *writers) end() {
	w.stop.Store(true)
	w.done.Wait()
}

// check wants that everything acknowledged is there.
func (w *writers) check(server *childServer) {
	w.t.Helper()
	w.t.Logf("answers: 200 x %d, 507 x %d, 503 x %d, none x %d", w.count(200), w.count(507), w.count(503), w.count(0))
	for _, line := range w.acknowledged {
		path, want, _ := strings.Cut(line, " ")
		if got := server.get(path); got != want {
			w.t.Errorf("%s is %s, but %s was acknowledged", path, got, want)
		}
	}
}
