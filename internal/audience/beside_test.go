package audience_test

import (
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A mirror is a client that takes what it is told when a test says so. It applies all of it to one tree, as an SDK does with
// what has no tag.
type mirror struct {
	t testing.TB
	f *enginetest.Fixture
	*audience.Audience
	node  tree.Node
	asked tree.Path // by Get
	log   []string
}

func newMirror(t testing.TB, f *enginetest.Fixture) *mirror {
	m := &mirror{t: t, f: f, Audience: audience.New(f.Database, audience.Options{Wake: func() {}})}
	t.Cleanup(m.Close)
	return m
}

// newBeside returns a mirror of a database that all may read, with a value at /a/b.
func newBeside(t testing.TB) (*enginetest.Fixture, *mirror) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(open)
	f.Put("/a", `{"b":1}`)
	return f, newMirror(t, f)
}

// take takes all that there is.
func (m *mirror) take() {
	m.t.Helper()
	m.f.WaitForWatches()
	for item, ok := m.Next(); ok; item, ok = m.Next() {
		m.apply(item)
	}
}

func (m *mirror) apply(item audience.Item) {
	m.t.Helper()
	switch {
	case item.Answer != nil:
		m.log = append(m.log, "answer")
		if item.Answer.Err != nil {
			m.t.Errorf("answer %d: %v", item.Answer.ID, item.Answer.Err)
		} else if item.Answer.Content != nil {
			m.set(m.asked, content(m.t, item.Answer.Content))
		}
	case item.Event.Kind >= watch.Cancel:
		m.log = append(m.log, "over")
		m.Over(item.Listen)
	default:
		value := string(item.Event.Value)
		if item.Event.Content != nil {
			value = content(m.t, item.Event.Content)
		}
		m.log = append(m.log, "event")
		m.set(item.Listen.Path.Join(item.Event.Path), value)
	}
}

func (m *mirror) set(at tree.Path, value string) {
	m.t.Helper()
	n, err := tree.Decode(strings.NewReader(strings.TrimSpace(value)), tree.DecodeOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	editor := tree.NewEditor(m.node)
	editor.Set(at, n)
	m.node = editor.Node()
}

// listen listens to a place, with the hash of what the client has there.
func (m *mirror) listen(id int64, at string, known bool) {
	req := audience.ListenRequest{Path: enginetest.Path(m.t, at), Cookie: at}
	if known {
		req.Known = &watch.Known{Hash: sdkhash.Of(m.node.At(req.Path))}
	}
	m.Listen(id, req)
}

// compare reports where the client does not have what is there.
func (m *mirror) compare(at string) {
	m.t.Helper()
	m.take()
	got, want := m.node.At(enginetest.Path(m.t, at)), expected(m.t, m.f, at, nil)
	if !tree.Equal(got, want) {
		text := func(n tree.Node) []byte { return tree.AppendJSON(nil, n, tree.Export) }
		m.t.Errorf("the client has %s at %s, want %s; it was told %v", text(got), at, text(want), m.log)
	}
}

// TestListenBeside: a client listens at a place that it has by a listen above or below, which it ends then. What it says that it
// knows it said before it was told what is on its way from that one, and what waits is told no more when that one has ended.
func TestListenBeside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to string
		waits    string // writes that wait to be told when the client listens
	}{
		"below":           {"/a", "/a/b", "PUT /a/b 1"},
		"above":           {"/a/b", "/a", "PUT /a/b 1"},
		"far above":       {"/a/b", "/", "PUT /a/b 1"},
		"another waits":   {"/a", "/a/b", "PUT /a/b 1;PUT /a/c 2"},
		"sent again":      {"/a", "/a/b", "again;PUT /a/b 1"},
		"ended otherwise": {"/a", "/a/b", "PUT /a/b 1;rules"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := enginetest.Open(t, store.Options{})
			f.Rule(`{"rules":{".read":"auth != null",".write":true,"a":{"b":{".read":true}}}}`)
			f.Put("/a", `{"b":1}`)
			m := newMirror(t, f)
			m.Identify(enginetest.User(t, `{"uid":"ann"}`))
			for i, other := range []string{"/a!", "/a0", "/a/a", "/a/b!", "/z"} {
				m.listen(int64(10+i), other, false)
			}
			m.listen(1, c.from, false)
			m.take()
			known := m.node
			f.Do("PUT /a/b 2")
			m.take() // which is on its way
			ended := false
			for request := range strings.SplitSeq(c.waits, ";") {
				switch request {
				case "":
				case "again":
					now := m.node
					m.node = known
					m.listen(4, c.from, true)
					m.node = now
				case "rules":
					ended = true
				default:
					f.Do(request)
				}
			}
			f.WaitForWatches()
			now := m.node
			m.node = known
			m.log = nil
			m.listen(2, c.to, true)
			m.node = now
			if ended {
				m.Identify(auth.Identity{})
			} else {
				m.Unlisten(3, enginetest.Path(t, c.from), nil)
			}
			m.compare(c.to)
		})
	}
}

// TestGetBeside: what a client asks for has its place in the order, too: it must not take back what a listen below has told.
func TestGetBeside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string // writes before the client asks, and when it has asked
		took          bool   // it takes what was written before
	}{
		"nothing is written": {},
		"then written":       {after: "PUT /a/b 2"},
		"written":            {before: "PUT /a/b 2"},
		"written and then":   {before: "PUT /a/b 2;PUT /a/b 3", after: "PUT /a/b 4;PUT /a/b 5"},
		"told and then":      {before: "PUT /a/b 2;PUT /a/b 3", took: true, after: "PUT /a/b 4;DELETE /a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := enginetest.Open(t, store.Options{})
			f.Rule(open)
			f.Put("/a", `{"b":1,"c":1}`)
			m := newMirror(t, f)
			m.listen(1, "/a/b", false)
			m.take()
			do := func(requests string) {
				for request := range strings.SplitSeq(requests, ";") {
					if request != "" {
						f.Do(request)
					}
				}
			}
			do(c.before)
			if c.took {
				m.take()
			}
			m.asked = enginetest.Path(t, "/a")
			m.Get(2, m.asked, nil)
			do(c.after)
			m.compare("/a/b")
		})
	}
}

// TestListenBesideWhileTaken: what a listen is to be told waits as well while it is being taken from its watch.
func TestListenBesideWhileTaken(t *testing.T) {
	t.Parallel()
	var m *mirror
	var known tree.Node
	var isArmed atomic.Bool
	goOn := make(chan struct{})
	f := enginetest.Open(t, store.Options{Now: func() time.Time {
		if isArmed.CompareAndSwap(true, false) { // the watch has missed something, and looks how often that was
			now := m.node
			m.node = known
			m.listen(2, "/a/b", true)
			m.node = now
			go func() {
				defer close(goOn)
				m.Unlisten(3, enginetest.Path(t, "/a"), nil)
			}()
			for m.Listens() > 1 {
				runtime.Gosched()
			}
		}
		return time.Now()
	}})
	f.Rule(open)
	f.Put("/a", `{"b":1}`)
	m = newMirror(t, f)
	m.listen(1, "/a", false)
	m.take()
	known = m.node
	f.Do("PUT /a/b 2")
	m.take()
	for range 9 { // more than is kept for a place
		f.Put("/a/c", `"`+strings.Repeat("x", 1<<20)+`"`)
	}
	f.Do("DELETE /a/c")
	f.Do("PUT /a/b 1")
	f.WaitForWatches()
	isArmed.Store(true)
	m.take()
	<-goOn
	m.compare("/a/b")
}

// TestListenBesideAfterLong: the other listen was told nothing for long, or nothing at all, and is told something before it ends.
func TestListenBesideAfterLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ told, waits bool }{
		"what waits is told then":        {told: true, waits: true},
		"what comes then":                {told: true},
		"its first event waits":          {waits: true},
		"its first event, and more then": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := newBeside(t)
			m.Close()
			now := time.Unix(1_700_000_000, 0)
			m.Audience = audience.New(f.Database, audience.Options{Wake: func() {}, Now: func() time.Time { return now }})
			t.Cleanup(m.Close)
			known := expected(t, f, "/", nil)
			if c.told {
				m.listen(1, "/a", false)
				m.take()
				now = now.Add(time.Hour)
				f.Do("PUT /a/b 2")
			} else {
				f.Do("PUT /a/b 2")
				m.listen(1, "/a", false)
			}
			f.Do("PUT /a/b 1")
			if c.waits {
				f.WaitForWatches()
			}
			m.node = known
			m.listen(2, "/a/b", true)
			f.WaitForWatches()
			if item, ok := m.Next(); ok {
				m.apply(item)
			}
			m.Unlisten(3, enginetest.Path(t, "/a"), nil)
			m.compare("/a/b")
		})
	}
}

// TestListenBesideIsBelieved: a client that has a listen above which tells nothing, or is to tell what it was opened at, is not sent again what it has.
func TestListenBesideIsBelieved(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"which was told": false, "which is to be told": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := newBeside(t)
			m.node = expected(t, f, "/", nil)
			m.listen(1, "/a", false)
			if !waits {
				m.take()
			}
			f.Do("PUT /x 1")
			m.listen(2, "/a/b", true)
			m.take()
			if got := strings.Join(m.log, " "); got != "event answer answer" {
				t.Errorf("it is told %q", got)
			}
		})
	}
}

// TestListenBesideWithoutMemory: there is no memory for what waits to be told.
func TestListenBesideWithoutMemory(t *testing.T) {
	t.Parallel()
	for name, isTelling := range map[string]bool{"behind what was told": false, "behind what is being told": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := newBeside(t)
			m.Close()
			m.Audience = audience.New(f.Database, audience.Options{Wake: func() {}, Memory: budget.New(budget.Options{Limit: 1 << 10})})
			t.Cleanup(m.Close)
			m.listen(1, "/a", false)
			m.listen(2, "/x", false)
			m.take()
			known := m.node
			f.Do("PUT /a/b 2")
			if f.WaitForWatches(); isTelling {
				item, _ := m.Next()
				m.apply(item)
			} else {
				m.take()
			}
			f.Do("PUT /a/b 1")
			f.Put("/x", `"`+strings.Repeat("x", 256<<10)+`"`) // is looked at first
			m.take()
			now := m.node
			m.node = known
			m.listen(3, "/a/b", true)
			m.node = now
			m.Unlisten(4, enginetest.Path(t, "/a"), nil)
			m.compare("/a/b")
		})
	}
}

// TestListenBesideGet: a client listens while the answer to what it asked for above or below is on its way, which it applies to that
// listen, too.
func TestListenBesideGet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		get, listen string
		taken       bool // the answer is taken before the client listens
	}{
		"below":                 {get: "/a", listen: "/a/b"},
		"below, and taken":      {get: "/a", listen: "/a/b", taken: true},
		"above":                 {get: "/a/b", listen: "/a"},
		"there":                 {get: "/a", listen: "/a"},
		"there, and then taken": {get: "/a", listen: "/a", taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := newBeside(t)
			m.asked = enginetest.Path(t, c.get)
			m.Get(1, m.asked, nil)
			if c.taken {
				m.take()
			}
			now := m.node
			m.node = tree.Node{}
			f.Do("DELETE /a")
			m.listen(2, c.listen, true)
			m.node = now
			m.compare(c.listen)
		})
	}
}

// TestReadsAreForgotten: what was read is remembered while it may be on its way, and of a client that reads much only the last of it.
func TestReadsAreForgotten(t *testing.T) {
	t.Parallel()
	const most = 64
	f := enginetest.Open(t, store.Options{})
	f.Rule(open)
	now := time.Unix(1_700_000_000, 0)
	a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: func() time.Time { return now }})
	defer a.Close()
	for i := range 2 * most {
		a.Get(int64(i), enginetest.Path(t, "/a/"+strconv.Itoa(i)), nil)
		a.Get(int64(i), enginetest.Path(t, "/a"), nil)
		for item, ok := a.Next(); ok; item, ok = a.Next() {
			content(t, item.Answer.Content)
		}
	}
	if got := a.Remembered(); got != most {
		t.Errorf("of %d reads %d are remembered, want %d", 2*most+1, got, most)
	}
	now = now.Add(time.Minute)
	a.Check()
	if got := a.Remembered(); got != 0 {
		t.Errorf("after a minute %d reads are remembered", got)
	}
}
