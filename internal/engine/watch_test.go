package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A watcher is a watch under test.
type watcher struct {
	f *fixture
	*engine.Watch
}

// watch begins to watch, as the administrator unless told otherwise, and takes
// the first event.
func (f *fixture) watch(req engine.WatchRequest) *watcher {
	f.t.Helper()
	w := f.begin(req)
	e, ok := w.Next()
	if !ok || e.Kind != engine.Put || e.Data == nil {
		f.t.Fatalf("the first event of %s is %v", req.Path, describe(f.t, e))
	}
	describe(f.t, e) // closes it
	return w
}

// begin is watch without taking the first event.
func (f *fixture) begin(req engine.WatchRequest) *watcher {
	f.t.Helper()
	if req.Wake == nil {
		req.Wake = func() {}
	}
	w, _, err := f.Watch(req)
	if err != nil {
		f.t.Fatalf("watch %s: %v", req.Path, err)
	}
	f.t.Cleanup(w.Close)
	return &watcher{f, w}
}

// whole returns the request of an administrator for all that is at a path.
func whole(t testing.TB, at string) engine.WatchRequest {
	return engine.WatchRequest{Path: path(t, at), Who: admin}
}

// filtered is whole for what a query selects, which is written like
// orderBy="a"&limitToFirst=2.
func filtered(t testing.TB, at, parameters string) engine.WatchRequest {
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
	req := whole(t, at)
	req.Query = &q
	return req
}

// describe returns an event as text. It prints and closes its data.
func describe(t testing.TB, e *engine.Event) string {
	t.Helper()
	if e == nil {
		return "none"
	}
	kind := [...]string{"put", "patch", "cancel", "auth_revoked", "end"}[e.Kind]
	if e.Data == nil {
		return strings.TrimSpace(kind + " " + string(e.Text))
	}
	var data bytes.Buffer
	if err := e.Data.PrintTo(&data); err != nil {
		t.Fatal(err)
	}
	if err := e.Data.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`first {"path":"/","data":%s}`, &data)
}

// events returns what the watch is told of all writes that were answered.
func (w *watcher) events() []string {
	w.f.t.Helper()
	w.f.WaitForWatches()
	var list []string
	for {
		e, ok := w.Next()
		if !ok {
			return list
		}
		list = append(list, describe(w.f.t, e))
	}
}

func (w *watcher) expect(want ...string) {
	w.f.t.Helper()
	if got := w.events(); !slices.Equal(got, want) {
		w.f.t.Errorf("events\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// do makes a request that is written like PATCH /a {"b":1}.
func (f *fixture) do(request string) engine.Commit {
	f.t.Helper()
	req, err := parseRequest(request)
	if err != nil {
		f.t.Fatalf("%s: %v", request, err)
	}
	req.Who = admin
	commit, err := f.Write(context.Background(), req)
	if err != nil {
		f.t.Fatalf("%.200s: %v", request, err)
	}
	return commit
}

func parseRequest(request string) (engine.Request, error) {
	verb, rest, _ := strings.Cut(request, " ")
	at, body, _ := strings.Cut(rest, " ")
	at, isPriority := strings.CutSuffix(at, "/.priority")
	p, err := tree.ParsePath(at)
	if err != nil {
		return engine.Request{}, err
	}
	var req engine.Request
	switch {
	case verb == "PATCH":
		req.Write, err = tree.DecodePatch(strings.NewReader(body), p, tree.DecodeOptions{})
	case isPriority:
		var node tree.Node
		node, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		req.Write = tree.PutPriority(p, node)
	case verb == "DELETE":
		req.Write = tree.Put(p, tree.Node{})
	default:
		req.Write, err = put(p, body)
		req.Push = verb == "POST"
	}
	return req, err
}

func splitLines(text string) []string { return strings.Split(text, "\n") }

func appendInt(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
