package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A Watcher is a watch under test.
type Watcher struct {
	f *Fixture
	*watch.Watch
}

// NewWatcher returns a watcher of a watch.
func NewWatcher(f *Fixture, w *watch.Watch) *Watcher { return &Watcher{f, w} }

// Watch begins to watch, as the administrator unless told otherwise, and takes
// the first event.
func (f *Fixture) Watch(req watch.Request) *Watcher {
	f.T.Helper()
	w := f.Begin(req)
	e, ok := w.Next()
	if !ok || e.Kind != watch.Put || e.Content == nil {
		f.T.Fatalf("the first event of %s is %v", req.Path, Describe(f.T, e))
	}
	Describe(f.T, e) // closes it
	return w
}

// Begin is Watch without taking the first event.
func (f *Fixture) Begin(req watch.Request) *Watcher {
	f.T.Helper()
	if req.Wake == nil {
		req.Wake = func() {}
	}
	w, _, err := f.Watches().Open(req)
	if err != nil {
		f.T.Fatalf("watch %s: %v", req.Path, err)
	}
	f.T.Cleanup(w.Close)
	return &Watcher{f, w}
}

// Whole returns the request of an administrator for all that is at a path.
func Whole(t testing.TB, at string) watch.Request {
	return watch.Request{Path: Path(t, at), Who: Admin}
}

// Filtered is Whole for what a query selects, which is written like
// orderBy="a"&limitToFirst=2.
func Filtered(t testing.TB, at, parameters string) watch.Request {
	t.Helper()
	values := map[string]string{}
	for part := range strings.SplitSeq(parameters, "&") {
		name, value, _ := strings.Cut(part, "=")
		values[name] = value
	}
	q, ok, err := query.Parse(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	if !ok || err != nil {
		t.Fatalf("the query %s: %v", parameters, err)
	}
	req := Whole(t, at)
	req.Query = &q
	return req
}

// Text returns a change with its place, as streams tell it; nil for any other event.
func Text(e *watch.Event) []byte {
	if e.Kind > watch.Patch {
		return nil
	}
	text := tree.AppendString([]byte(`{"path":`), e.Path.String())
	return append(append(append(text, `,"data":`...), e.Value...), '}')
}

// Describe returns an event as text. It prints and closes its data.
func Describe(t testing.TB, e *watch.Event) string {
	t.Helper()
	if e == nil {
		return "none"
	}
	kind := [...]string{"put", "patch", "ranges", "cancel", "auth_revoked", "end"}[e.Kind]
	if e.Content == nil {
		return strings.TrimSpace(kind + " " + string(Text(e)))
	}
	var data bytes.Buffer
	if err := e.Content.PrintTo(&data); err != nil {
		t.Fatal(err)
	}
	if err := e.Content.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`first {"path":"/","data":%s}`, &data)
}

// Events returns what the watch is told of all writes that were answered.
func (w *Watcher) Events() []string {
	w.f.T.Helper()
	w.f.WaitForWatches()
	var list []string
	for {
		e, ok := w.Next()
		if !ok {
			return list
		}
		list = append(list, Describe(w.f.T, e))
	}
}

// Expect reports a test as failed that is told other events.
func (w *Watcher) Expect(want ...string) {
	w.f.T.Helper()
	if got := w.Events(); !slices.Equal(got, want) {
		w.f.T.Errorf("events\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// WaitForWatches returns when everything that was answered so far is handed on.
func (f *Fixture) WaitForWatches() {
	f.T.Helper()
	for tries := 0; !f.Watches().HandedOn(); tries++ {
		// Most is handed on at once. What takes longer is waited for without taking its processor.
		switch {
		case tries < 100:
			runtime.Gosched()
		case tries < 500_000:
			_ = pause.For(context.Background(), time.Millisecond/4)
		default:
			f.T.Fatal("what was answered minutes ago is not handed on to the watches")
		}
	}
}
