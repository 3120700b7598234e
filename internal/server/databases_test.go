package server

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
)

// TestFoundingIsFinished: a database that was made, but got neither rules nor a
// secret before the server ended, gets them at the next start. One that is
// complete is left alone.
func TestFoundingIsFinished(t *testing.T) {
	c := newCatalog(t)
	if _, err := c.Create("half"); err != nil {
		t.Fatal(err)
	}
	closed := &founder{Catalog: c, secretsDir: t.TempDir()}
	if _, err := closed.found(t.Context(), "whole", ""); err != nil {
		t.Fatal(err)
	}
	dev := &founder{Catalog: c, secretsDir: t.TempDir(), open: true}
	for name, wantOpen := range map[string]bool{"half": true, "whole": false} {
		database, err := dev.found(t.Context(), name, "")
		if err != nil || !database.HasSecrets() || database.IsOpen() != wantOpen {
			t.Errorf("%s: %v, open %t, with secrets %t; want open %t, with secrets", name, err, database.IsOpen(), database.HasSecrets(), wantOpen)
		}
	}
}

// newCatalog returns a catalog of a store in memory.
func newCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: engine.NewClock(time.Now, rand.Reader, 0)})
	t.Cleanup(func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
