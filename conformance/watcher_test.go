package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A watcher keeps a cache of a location by a stream, for as long as it takes: it
// comes back with the id of the last commit when the stream ends.
//
// What it holds the server to: a commit always changes the cache, its id is
// greater than the one before, and the count of each writer rises by one at a
// time, except by the first event of a stream that is not resumed, and by one that
// tells everything anew. No count ever goes back. It may read everything, so it is
// never cancelled.
type watcher struct {
	name     string
	url      string // with a query
	depth    int    // how many keys the location is below the tree of the writers
	filtered bool
	client   *http.Client

	mu       sync.Mutex
	cut      context.CancelFunc // of the current connection
	cache    cache
	counts   map[string]int
	id       string
	problems []string
	resumed  int // how often it came back and was told only what it missed
	renewed  int // how often it was told everything anew, which should be rare
}

// run keeps the stream until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.connect(ctx); err != nil {
			select { // the server is down, or was cut off
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// connect opens the stream and reads it to its end.
func (w *watcher) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	w.mu.Lock()
	w.cut = cancel
	id := w.id
	w.mu.Unlock()
	if id != "" {
		req.Header.Set("Last-Event-ID", id)
	}
	answer, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return w.read(answer.Body, id != "" && !w.filtered)
}

type message struct{ id, event, data string }

// read takes commit after commit. Without its last event, a commit is not
// applied: it will come again.
func (w *watcher) read(body io.Reader, resuming bool) error {
	in := bufio.NewReaderSize(body, 1<<20)
	var commit []message
	for first := true; ; {
		m, err := readMessage(in)
		if err != nil {
			return err
		}
		switch m.event {
		case "keep-alive":
			continue
		case "cancel", "auth_revoked":
			w.mu.Lock()
			w.complain("it was cancelled, but everything may be read: %v", m)
			w.mu.Unlock()
			return io.EOF
		}
		commit = append(commit, m)
		if m.id == "" {
			continue
		}
		w.take(commit, first, resuming)
		commit, first = nil, false
	}
}

func readMessage(in *bufio.Reader) (message, error) {
	var m message
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = value
		case "":
			return m, nil
		default:
			return m, fmt.Errorf("the line %s", show(line))
		}
	}
}

// take applies a commit and looks at what it did.
func (w *watcher) take(commit []message, first, resuming bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, _ := json.Marshal(w.cache.root)
	for _, m := range commit {
		if err := w.cache.apply(m.event, m.data); err != nil {
			w.complain("%v", err)
			return
		}
	}
	after, _ := json.Marshal(w.cache.root)
	last := commit[len(commit)-1]
	anew := strings.HasPrefix(last.data, `{"path":"/","data":`) && last.event == "put" && w.depth == 0
	switch {
	case w.filtered:
	case anew && (!first || resuming):
		w.renewed++
	case first && resuming:
		w.resumed++
	}
	if !w.filtered && (!first || resuming) {
		if string(before) == string(after) {
			w.complain("the commit %s changed nothing: %v", last.id, commit)
		}
		if position(last.id) <= position(w.id) {
			w.complain("the commit %s comes behind %s", last.id, w.id)
		}
	}
	w.id = last.id
	w.compareCounts(commit, (first && !resuming) || anew || w.filtered)
}

// compareCounts holds the counts to account.
func (w *watcher) compareCounts(commit []message, mayJump bool) {
	counts := counts(w.cache.root, w.depth)
	for writer, n := range counts {
		old := w.counts[writer]
		switch {
		case n < old:
			w.complain("the count of %s went back from %d to %d by %v", writer, old, n, commit)
		case n > old+1 && !mayJump:
			w.complain("the count of %s went from %d to %d by %v", writer, old, n, commit)
		}
	}
	maps.Copy(w.counts, counts) // of a filtered stream, some may be out of sight
}

func (w *watcher) complain(format string, args ...any) {
	if len(w.problems) < 10 {
		w.problems = append(w.problems, w.name+": "+fmt.Sprintf(format, args...))
	}
}

// position returns the number of a commit in an id.
func position(id string) int {
	_, text, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(text)
	return n
}

// equals reports whether the cache is what the server answers.
func (w *watcher) equals(client *http.Client) (bool, error) {
	answer, err := client.Get(strings.Replace(w.url, "resume=true", "", 1))
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err
	}
	want, err := decode(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	return reflect.DeepEqual(w.cache.root, want), err
}

// counts returns how far the writers are, by what is in a tree. The tree begins
// some keys below that of the writers: with depth 0 it holds w0, w1 and so on;
// with depth 1 it is that of one writer; with depth 2 it is not known.
func counts(root any, depth int) map[string]int {
	found := map[string]int{}
	object, _ := root.(map[string]any)
	if inner, ok := object["d"].(map[string]any); ok && depth == 0 {
		object = inner
	}
	switch depth {
	case 0:
		for key, node := range object {
			if strings.HasPrefix(key, "w") {
				found[key] = count(node)
			}
		}
	case 1:
		if root != nil {
			found["the writer"] = count(root)
		}
	}
	return found
}

// count returns how far a writer is: the greatest n in its tree, or one more if it
// has deleted what it said it would.
func count(node any) int {
	n := greatest(node)
	object, ok := node.(map[string]any)
	if !ok {
		return n
	}
	number, ok := object["del"].(json.Number)
	if !ok {
		return n
	}
	del, _ := strconv.Atoi(string(number))
	queue, _ := object["q"].(map[string]any)
	if queue["q"+string(number)] == nil && del == n+1 {
		return del
	}
	return n
}

func greatest(node any) int {
	object, _ := node.(map[string]any)
	most := 0
	for key, child := range object {
		if number, ok := child.(json.Number); ok && key == "n" {
			n, _ := strconv.Atoi(string(number))
			most = max(most, n)
		}
		most = max(most, greatest(child))
	}
	return most
}
