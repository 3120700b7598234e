package wire_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/wire"
)

// serveFounding starts a server that makes databases, and returns how many it made and
// what is set for it to fail.
func serveFounding(t *testing.T) (s *server, made *atomic.Int32, fails *atomic.Bool) {
	t.Helper()
	made, fails = &atomic.Int32{}, &atomic.Bool{}
	s = serve(t, func(o *wire.Options, _ *outbox.Options) {
		o.Dev = dev.Guard{On: true}
		c := o.Catalog
		o.Create = func(ctx context.Context, name string) (*engine.Database, error) {
			if fails.Load() {
				return nil, errors.New("no disk")
			}
			db, err := c.Create(name)
			if fault.KindOf(err) == fault.Conflict {
				return c.Database(name)
			}
			if err == nil {
				made.Add(1)
				_, err = db.SetRules(ctx, state.OpenRules)
			}
			return db, err
		}
	})
	return s, made, fails
}

// TestConnectingMakesNoDatabase: under --dev a client opens a connection to a database that is
// not there, and makes it when it asks something of it.
func TestConnectingMakesNoDatabase(t *testing.T) {
	t.Parallel()
	s, made, _ := serveFounding(t)
	c, id := s.dial("/.ws?v=5&ns=new")
	c.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
	c.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
	for _, target := range []string{"/.ws?ns=new", "/.lp?ns=new&start=t&cb=1", "/.lp?ns=new&id=a&pw=b"} {
		answer, err := http.Get(s.http.URL + target)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	again, _ := s.dial("/.ws?v=5&ns=new&ls=" + id)
	c.ExpectClose(1000)
	if n := made.Load(); n != 0 {
		t.Fatalf("connecting has made %d databases", n)
	}
	ask(t, again, "q", `{"p":"/a","h":""}`)
	other, _ := s.dial("/.ws?v=5&ns=new")
	ask(t, other, "p", `{"p":"/a","d":1}`)
	again.Expect(push("a", "1"))
	if n := made.Load(); n != 1 {
		t.Errorf("%d databases were made, want 1", n)
	}
}

// TestDatabaseThatCannotBeMade: the client is closed, and may come back.
func TestDatabaseThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s, _, fails := serveFounding(t)
	fails.Store(true)
	c, _ := s.dial("/.ws?v=5&ns=new")
	c.Request("p", `{"p":"/a","d":1}`)
	c.ExpectClose(1011)
	fails.Store(false)
	c, _ = s.dial("/.ws?v=5&ns=new")
	ask(t, c, "p", `{"p":"/a","d":1}`)
}
