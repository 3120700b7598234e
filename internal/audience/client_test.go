package audience_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A client is the other end of an audience: it applies what it is told to a cache for
// each listen.
type client struct {
	t testing.TB
	*audience.Audience
	woken chan struct{}

	mu       sync.Mutex
	changed  sync.Cond // with mu: something was told
	caches   map[*audience.Listen]*cache
	position uint64 // of the last event
	answers  map[int64]*audience.Answer
	log      []string // the items in order, if wanted
	logged   bool
	logouts  int
	// looks are called after each item.
	looks []func(audience.Item)
	done  chan struct{}
	quit  chan struct{}
}

type cache struct {
	name string
	node tree.Node
	over bool
}

func newClient(t testing.TB, db *engine.Database, limits audience.Limits) *client {
	c := &client{
		t: t, woken: make(chan struct{}, 1), caches: make(map[*audience.Listen]*cache),
		answers: make(map[int64]*audience.Answer), done: make(chan struct{}), quit: make(chan struct{}),
	}
	c.Audience = audience.New(db, audience.Options{Limits: limits, Wake: func() {
		select {
		case c.woken <- struct{}{}:
		default:
		}
	}})
	c.changed.L = &c.mu
	go c.run()
	t.Cleanup(func() {
		close(c.quit)
		<-c.done
		c.Close()
	})
	return c
}

// run takes what there is.
func (c *client) run() {
	defer close(c.done)
	for {
		select {
		case <-c.woken:
		case <-c.quit:
			return
		}
		for item, ok := c.Next(); ok; item, ok = c.Next() {
			c.mu.Lock()
			c.apply(item)
			c.changed.Broadcast()
			c.mu.Unlock()
		}
	}
}

func (c *client) apply(item audience.Item) {
	defer func() {
		for _, look := range c.looks {
			look(item)
		}
	}()
	switch {
	case item.Logout != nil:
		c.logouts++
		c.note("logout %v", item.Logout)
	case item.Answer != nil:
		c.answers[item.Answer.ID] = item.Answer
		c.note("answer %d %v%s", item.Answer.ID, item.Answer.Err, content(c.t, item.Answer.Content))
	default:
		c.event(item.Listen, item.Event)
	}
}

func (c *client) note(format string, args ...any) {
	if c.logged {
		c.log = append(c.log, fmt.Sprintf(format, args...))
	}
}

func content(t testing.TB, from watch.Content) string {
	if from == nil {
		return ""
	}
	var text bytes.Buffer
	if err := from.PrintTo(&text); err != nil {
		t.Error(err)
	}
	_ = from.Close()
	return " " + text.String()
}

func (c *client) event(l *audience.Listen, e *watch.Event) {
	at := c.caches[l]
	if at == nil {
		at = &cache{name: l.Cookie.(string)}
		c.caches[l] = at
	}
	if at.over {
		c.t.Errorf("%s was told something when it was over", at.name)
	}
	if e.Kind >= watch.Cancel {
		at.over = true
		c.note("%s: over %d", at.name, e.Kind)
		return
	}
	if e.Position < c.position {
		c.t.Errorf("%s was told of %d behind %d", at.name, e.Position, c.position)
	}
	c.position = e.Position
	value := string(e.Value)
	if e.Content != nil {
		value = strings.TrimSpace(content(c.t, e.Content))
	}
	c.note("%s: %d %s %s", at.name, e.Kind, e.Path, value)
	at.apply(c.t, e, value)
}

func (at *cache) apply(t testing.TB, e *watch.Event, value string) {
	editor := tree.NewEditor(at.node)
	if e.Kind == watch.Put {
		n, err := tree.Decode(strings.NewReader(value), tree.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		editor.Set(e.Path, n)
	} else {
		w, err := tree.DecodePatch(strings.NewReader(value), e.Path, tree.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		editor.Apply(tree.Path{}, func(yield func(tree.Assignment) bool) {
			for _, a := range w.Assignments {
				if !yield(a) {
					return
				}
			}
		})
	}
	at.node = editor.Node()
}

// cached returns what a listen shows, by its name.
func (c *client) cached(name string) tree.Node {
	for _, at := range c.caches {
		if at.name == name && !at.over {
			return at.node
		}
	}
	return tree.Node{}
}

// listen listens to a place, and waits for the answer.
func (c *client) listen(id int64, at, parameters string) *audience.Answer {
	c.Listen(id, c.listenRequest(at, parameters))
	return c.await(id)
}

func (c *client) listenRequest(at, parameters string) audience.ListenRequest {
	req := audience.ListenRequest{Path: enginetest.Path(c.t, at), Cookie: at}
	if parameters != "" {
		req.Query = enginetest.Filtered(c.t, at, parameters).Query
		req.Cookie = at + "?" + parameters
	}
	return req
}

func (c *client) write(id int64, request string) {
	req, err := enginetest.ParseRequest(request)
	if err != nil {
		c.t.Error(err)
	}
	c.Write(id, req)
}

// await returns an answer when it is there.
func (c *client) await(id int64) (answer *audience.Answer) {
	c.t.Helper()
	c.eventually(fmt.Sprint("answer ", id), func() bool {
		answer = c.answers[id]
		return answer != nil
	})
	return answer
}

// eventually returns when something is true that what is told makes so.
func (c *client) eventually(what string, is func() bool) {
	c.t.Helper()
	isLate := false
	late := time.AfterFunc(time.Minute, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		isLate = true
		c.changed.Broadcast()
	})
	defer late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !is() {
		if isLate {
			c.t.Fatalf("waited a minute for %s", what)
		}
		c.changed.Wait()
	}
}

// expected returns what a listen should show.
func expected(t testing.TB, f *enginetest.Fixture, at string, q *query.Query) tree.Node {
	v := f.View()
	defer v.Close()
	var printed watch.Content
	var err error
	if q == nil {
		printed, err = v.Printer(enginetest.Path(t, at), tree.Export)
	} else {
		printed, err = v.Select(enginetest.Path(t, at), *q, tree.Export)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.Decode(strings.NewReader(strings.TrimSpace(content(t, printed))), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func openTiny(t testing.TB) *enginetest.Fixture {
	f := enginetest.Open(t, store.Options{})
	f.Reopen(engine.Options{Clock: f.Clock, Limits: enginetest.TinyLimits()})
	return f
}
