package catalog_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// nobody are others who decide nothing.
type nobody struct{}

func (nobody) Create(string) error         { return nil }
func (nobody) Drop(*engine.Database) error { return nil }
func (nobody) Await() error                { return nil }

// TestOpenedTooLate asks for a database that is gone when it is its turn to be opened.
func TestOpenedTooLate(t *testing.T) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem(), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c := catalog.New(s, engine.Options{})
	c.Share(nobody{})
	defer c.Close()
	d, err := c.Opened("gone", 7, func() bool { return false })
	if d != nil || err != nil {
		t.Errorf("a database that is gone is opened: %v, %v", d, err)
	}
	if _, err := c.Database("gone"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a database that is gone is found: %v", err)
	}
}

// everHome is a log whose node is the home of all databases.
type everHome struct{ engine.Log }

func (everHome) Home(store.ID) (tenure uint64, ok bool) { return 1, true }

// TestHomeWhileOpening opens a database while its node becomes the home. It does what a home does by itself, although it was not among those that
// were open then.
func TestHomeWhileOpening(t *testing.T) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem(), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	id, err := s.Create("db")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	c := catalog.New(s, engine.Options{Log: everHome{}, Observers: &state.Observers{Due: func(name string, _ int64) { told <- name }}})
	c.Share(nobody{})
	defer c.Close()
	if _, err := c.Opened("db", id, func() bool {
		if open := c.AllOpen(); len(open) > 0 {
			t.Errorf("%d databases are open already", len(open))
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Error("the database does not know that its node is the home")
	}
}
