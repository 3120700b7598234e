package server

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestLeftIsWrittenBeforeThePortsOpen: a client that comes with the first request finds what
// others have left to be written when the former process ended, however slow the disk is.
func TestLeftIsWrittenBeforeThePortsOpen(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	m := startManaged(t, data, nil)
	secret := m.file("secrets", "default")
	m.wantData(200, "PUT", "/ann.json", secret, `"online"`)
	m.stop()

	s, err := store.Open(data, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	databases := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis())})
	d, err := databases.Database("default")
	if err != nil {
		t.Fatal(err)
	}
	request := d.NewLeaving().Later(tree.Put(tree.Path{}.Child("ann"), tree.LeafNode(tree.StringLeaf("offline"))))
	request.Who = auth.Identity{Admin: true}
	if _, err := d.Write(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	databases.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	m = startManaged(t, data, func(c *Config) {
		c.Disturb = func(o *store.Options) { o.SlowSync = func() { time.Sleep(100 * time.Millisecond) } } //nolint:forbidigo // a slow disk
	})
	if status, text := m.send("GET", m.public+"/ann.json", secret, ""); status != 200 || strings.TrimSpace(text) != `"offline"` {
		t.Errorf("the first request finds %d %s, want what was left", status, text)
	}
	if !strings.Contains(m.log.String(), "wrote what connections had left to be written") {
		t.Errorf("the log does not say so:\n%s", m.log)
	}
}
