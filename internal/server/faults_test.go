package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/store"
)

// A faultyDisk is the real one, with free space and faults of the test's choice.
type faultyDisk struct {
	vfs.FS
	free atomic.Uint64
}

const diskBytes = 1 << 40

func (d *faultyDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := d.free.Load()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: diskBytes, UsedBytes: diskBytes - free}, nil
}

// newFaultyDisk returns a disk on which every change asks fault first.
func newFaultyDisk(fault func(errorfs.Op) error) *faultyDisk {
	d := &faultyDisk{FS: errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || fault == nil {
			return nil
		}
		return fault(op)
	}))}
	d.free.Store(diskBytes / 2)
	return d
}

// check returns the state of a check of /readyz, and its status.
func (m *managed) check(name string) (status int, state string) {
	m.t.Helper()
	status, text := m.send("GET", m.url+"/readyz", "", "")
	var r admin.Readiness
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		m.t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Name == name {
			return status, c.State
		}
	}
	m.t.Fatalf("/readyz has no check %s: %s", name, text)
	return 0, ""
}

// waitCheck waits until a check has a state.
func (m *managed) waitCheck(wantStatus int, name, want string) {
	m.t.Helper()
	wait(m.t, fmt.Sprintf("%s to be %s", name, want), func() bool {
		status, state := m.check(name)
		return status == wantStatus && state == want
	})
}

// wantRefused wants an answer that tells to try again.
func (m *managed) wantRefused(status int, method, path, body, text string) {
	m.t.Helper()
	r, err := http.NewRequest(method, m.public+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := m.client.Do(r)
	if err != nil {
		m.t.Fatalf("%s %s: %v, want %d", method, path, err, status)
	}
	defer answer.Body.Close()
	got, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != status || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(got), text) {
		m.t.Errorf("%s %s: %d %s with Retry-After %q, want %d with one and %q", method, path, answer.StatusCode, got,
			answer.Header.Get("Retry-After"), status, text)
	}
}

func TestDiskThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	const mark = diskBytes / 20
	disk := newFaultyDisk(nil)
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.Dev = true
		c.Disturb = func(o *store.Options) { o.FS, o.BallastBytes = disk, -1 }
	})
	m.wantData(200, "PUT", "/.json", "", `{"a":1,"b":2,"c":3,"d":{"e":1,"f":2}}`)
	stream := m.listen(false, "/.json")
	disk.free.Store(mark - 1)
	m.waitCheck(503, "disk", "nospace")
	const text = "the disk is nearly full"
	m.wantRefused(507, "PUT", "/x.json", `1`, text)
	m.wantRefused(507, "POST", "/x.json", `1`, text)
	m.wantRefused(507, "PATCH", "/.json", `{"a":null,"x":1}`, text)
	m.wantData(200, "DELETE", "/a.json", "", "")
	m.wantData(200, "PUT", "/b.json", "", "null")
	m.wantData(200, "PATCH", "/.json", "", `{"c":null,"d/e":null}`)
	if status, got := m.send("GET", m.public+"/.json", "", ""); status != 200 || got != `{"d":{"f":2}}` {
		t.Errorf("GET: %d %s, want what is left", status, got)
	}
	for _, want := range []string{`{"path":"/a","data":null}`, `{"path":"/b","data":null}`} {
		if got := nextData(t, stream); got != want {
			t.Errorf("the stream tells %s, want %s", got, want)
		}
	}
	disk.free.Store(mark + mark/4) // not enough to come back
	m.wantRefused(507, "PUT", "/x.json", `1`, text)
	disk.free.Store(2 * mark)
	m.waitCheck(200, "disk", "ok")
	m.wantData(200, "PUT", "/x.json", "", `1`)
}

// nextData returns the data of the next event of a stream, but for a keep-alive.
func nextData(t *testing.T, stream *bufio.Reader) string {
	t.Helper()
	for event := ""; ; {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && event != "keep-alive\n" {
			return strings.TrimSpace(data)
		}
	}
}

// TestWritesThatAreHeldUp has a disk that makes no tables, so that memtables fill.
func TestWritesThatAreHeldUp(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	disk := newFaultyDisk(func(op errorfs.Op) error {
		if held.Load() && strings.HasSuffix(op.Path, ".sst") {
			<-released
		}
		return nil
	})
	clock := &fakeClock{now: time.Now()}
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.Dev = true
		c.Disturb = func(o *store.Options) { o.FS, o.Now, o.MemTableBytes, o.BallastBytes = disk, clock.Now, 256<<10, -1 }
	})
	t.Cleanup(release) // or the server would not end when the test has failed
	held.Store(true)
	filling, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		fill(filling, m)
	}()
	wait(t, "writes to be held up", func() bool { return strings.Contains(m.log.String(), "writes are held up") })
	if status, state := m.check("writes"); status != 200 || state != "ok" {
		t.Errorf("readiness at the start of a stall is %d with writes=%s, want 200 and ok", status, state)
	}
	wait(t, "writes to be stalled", func() bool {
		clock.Add(6 * time.Second)
		status, state := m.check("writes")
		return status == 503 && state == "stalled"
	})
	m.wantRefused(503, "PUT", "/new.json", `1`, "does not keep up")
	m.wantData(200, "GET", "/fill/0.json", "", "")
	if page := m.want(200, "GET", "/metrics", ""); !strings.Contains(page, "livetree_write_stall_seconds_total") {
		t.Error("no metric tells of the stall")
	}
	stop()
	<-done
	held.Store(false)
	release()
	m.waitCheck(200, "writes", "ok")
	m.wantData(200, "PUT", "/new.json", "", `1`)
}

// fill writes until ctx ends.
func fill(ctx context.Context, m *managed) {
	body := `"` + strings.Repeat("x", 32<<10) + `"`
	for i := 0; ctx.Err() == nil; i++ {
		r, err := http.NewRequestWithContext(ctx, "PUT", fmt.Sprintf("%s/fill/%d.json", m.public, i), strings.NewReader(body))
		if err != nil {
			return
		}
		if answer, err := m.client.Do(r); err == nil {
			answer.Body.Close()
		}
	}
}

// TestSyncThatHangs: a write whose sync does not end is neither confirmed nor
// refused: its connection is cut.
func TestSyncThatHangs(t *testing.T) {
	t.Parallel()
	var hang atomic.Bool
	released, clock := make(chan struct{}), &fakeClock{now: time.Now()}
	release := sync.OnceFunc(func() { close(released) })
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.Dev = true
		c.Disturb = func(o *store.Options) {
			o.Now = clock.Now
			o.SlowSync = func() {
				if hang.Load() {
					<-released
				}
			}
		}
	})
	t.Cleanup(release) // or the server would not end when the test has failed
	m.wantData(200, "PUT", "/a.json", "", `1`)
	hang.Store(true)
	failed := make(chan error, 1)
	go func() {
		r, err := http.NewRequest("PUT", m.public+"/a.json", strings.NewReader(`2`))
		if err == nil {
			var answer *http.Response
			if answer, err = m.client.Do(r); err == nil {
				answer.Body.Close()
				err = errors.New(answer.Status)
			}
		}
		failed <- err
	}()
	wait(t, "the sync to hang", func() bool {
		clock.Add(time.Second)
		_, state := m.check("sync")
		return state == "waiting"
	})
	if status, got := m.send("GET", m.public+"/a.json", "", ""); status != 200 || got != "1" {
		t.Errorf("GET beside a sync that hangs: %d %s, want 200 and the last durable 1", status, got)
	}
	if err := <-failed; !strings.Contains(err.Error(), "EOF") {
		t.Errorf("the write ends with %v, want that its connection is cut", err)
	}
	hang.Store(false)
	release()
	m.waitCheck(200, "sync", "ok")
}

// TestDamagedTable: what cannot be read is an error and never null, and nothing
// is written on top of it.
func TestDamagedTable(t *testing.T) {
	t.Parallel()
	const groups, size = 100, 12 // of children; a group fits into one write to a client
	group := func(g int) string { return fmt.Sprintf("/d/%03d", g) }
	data := t.TempDir()
	m := startManaged(t, data, func(c *Config) { c.Dev = true })
	for g := range groups {
		m.wantData(200, "PUT", group(g)+".json", "", childrenOf(g, size))
	}
	m.stop()
	damageLargestTable(t, data)
	m = startManaged(t, data, func(c *Config) { c.Dev, c.CacheBytes = true, 1<<20 })
	var bad []int
	for i := range groups * size {
		path := fmt.Sprintf("%s/k%02d.json", group(i/size), i%size)
		switch status, got := m.send("GET", m.public+path, "", ""); {
		case status == 500 && strings.Contains(got, `"data corruption"`):
			bad = append(bad, i)
		case status != 200 || got != childOf(i/size, i%size):
			t.Errorf("GET %s beside damage: %d %.60s, want the data or 500", path, status, got)
		}
	}
	if len(bad) == 0 || len(bad) > groups*size/2 {
		t.Fatalf("%d of %d reads met the damage, want a few", len(bad), groups*size)
	}
	t.Logf("%d children are damaged, from child %d of group %d on", len(bad), bad[0]%size, bad[0]/size)
	m.waitCheck(503, "corruption", "found")
	for _, method := range []string{"PUT", "DELETE"} {
		if status, got := m.send(method, m.public+"/new.json", "", "1"); status != 500 || !strings.Contains(got, "data corruption") {
			t.Errorf("%s beside damage: %d %s, want that it is refused", method, status, got)
		}
	}
	// Of a group that begins well, the damage is met when the stream has begun.
	small := "\r\n\r\nevent: cancel\ndata: null\n\n"
	if bad[0]%size == 0 {
		small = "data corruption"
	}
	m.wantStream(fmt.Sprintf("%s/k%02d.json", group(bad[0]/size), bad[0]%size), "data corruption")
	m.wantStream(group(bad[0]/size)+".json", small)
	if got := m.stream("/d.json"); strings.Contains(got, "}}\n\n") || !strings.Contains(got, "event: put\n") {
		t.Errorf("a large stream of damaged data is %.300q, want that its event does not end", got)
	}
	if !strings.Contains(m.log.String(), ".sst") {
		t.Errorf("the log does not name the table:\n%.2000s", m.log)
	}
	if page := m.want(200, "GET", "/metrics", ""); strings.Contains(page, "livetree_corruption_total 0\n") {
		t.Error("livetree_corruption_total is 0 beside damage")
	}
}

// childrenOf returns a group of children, and childOf one of them: text that does
// not shrink.
func childrenOf(group, size int) string {
	var list []string
	for i := range size {
		list = append(list, fmt.Sprintf(`"k%02d":%s`, i, childOf(group, i)))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func childOf(group, i int) string {
	rng := rand.New(rand.NewPCG(uint64(group), uint64(i)))
	text := make([]byte, 1000)
	for j := range text {
		text[j] = byte('a' + rng.IntN(26))
	}
	return `"` + string(text) + `"`
}

// damageLargestTable flips a bit in the middle of the largest table; mend flips it
// back.
func damageLargestTable(t *testing.T, data string) (mend func()) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(data, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("there is no table: %v", err)
	}
	name, text := "", ""
	for _, table := range tables {
		if got := readFile(t, table); len(got) > len(text) {
			name, text = table, got
		}
	}
	damaged := []byte(text)
	damaged[len(damaged)/3] ^= 4
	writeFile(t, name, string(damaged))
	return func() { writeFile(t, name, text) }
}

// wantStream wants that all of a stream, which the server ends, holds a text and no
// event with data.
func (m *managed) wantStream(path, want string) {
	m.t.Helper()
	if got := m.stream(path); !strings.Contains(got, want) || strings.Contains(got, "event: put") {
		m.t.Errorf("the stream of %s, which is damaged, is %.600q, want %q", path, got, want)
	}
}

// stream returns all of a stream that the server ends.
func (m *managed) stream(path string) string {
	m.t.Helper()
	conn := dialTLS(m)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n", path)
	all, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		m.t.Logf("the stream of %s is cut: %v", path, err)
	}
	return string(all)
}

// TestDiskThatFails: the process ends with 74, acknowledges nothing more, says
// why, and what it acknowledged is there after a start.
func TestDiskThatFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"sync", "write"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := startChild(t, filepath.Join(dir, "data"), filepath.Join(dir, "fault"))
			for i := range 20 {
				if status := p.put(fmt.Sprintf("/a/%d.json", i), "1"); status != 200 {
					t.Fatalf("PUT before the fault: %d", status)
				}
			}
			writeFile(t, p.faultFile+".new", fault) // so that it is seen as a whole
			if err := os.Rename(p.faultFile+".new", p.faultFile); err != nil {
				t.Fatal(err)
			}
			failed := time.Now()
			if status := p.put("/a/later.json", "1"); status != 0 {
				t.Errorf("PUT on a disk that fails: %d, want that the connection is cut", status)
			}
			if code := p.wait(); code != store.ExitIO {
				t.Errorf("exit code %d, want %d:\n%s", code, store.ExitIO, &p.stderr)
			}
			t.Logf("the process has ended %v after the write", time.Since(failed))
			log := p.stderr.String()
			if strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, ".log") || !strings.Contains(log, "input/output error") {
				t.Errorf("the log is\n%s\nwant one error with the file and the reason", log)
			}
			again := startChild(t, filepath.Join(dir, "data"), "")
			for i := range 20 {
				if got := again.get(fmt.Sprintf("/a/%d.json", i)); got != "1" {
					t.Errorf("after a start /a/%d is %s, want 1", i, got)
				}
			}
			again.signal(syscall.SIGTERM)
			if code := again.wait(); code != 0 {
				t.Errorf("exit code %d after SIGTERM, want 0", code)
			}
		})
	}
}

// failFrom returns the fault that a file asks for.
func failFrom(file string) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if isSync == (string(text) == "sync") {
			return &os.PathError{Op: string(text), Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}
}
