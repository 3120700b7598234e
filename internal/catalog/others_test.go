package catalog_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
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
