package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// leaveNumber leaves a number to be written at the root, as the administrator.
func leaveNumber(t *testing.T, d *engine.Database, n int) *engine.Leaving {
	t.Helper()
	l := d.NewLeaving()
	request := l.Later(tree.Put(tree.Path{}, number(n)))
	request.Who = root
	if _, err := d.Write(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return l
}

func create(t *testing.T, c *catalog.Catalog, name string) *engine.Database {
	t.Helper()
	d, err := c.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRunLeft: what connections of a killed process have left is made at the next start, in
// every database that is still there.
func TestRunLeft(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	c, closeAll := open(t, disk)
	for i := range 5 {
		leaveNumber(t, create(t, c, fmt.Sprintf("left-%d", i)), i+1)
	}
	create(t, c, "nothing")
	if _, err := leaveNumber(t, create(t, c, "done"), 7).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	leaveNumber(t, create(t, c, "dropped"), 8)
	if err := c.Drop("dropped"); err != nil {
		t.Fatal(err)
	}
	killed := disk.CrashClone(vfs.CrashCloneCfg{})
	closeAll()

	c, closeAll = open(t, killed)
	defer closeAll()
	var log bytes.Buffer
	c.RunLeft(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil)
	opened := 0
	c.Each(func(string, *engine.Database) bool { opened++; return true })
	if opened != 5 {
		t.Errorf("%d databases are open, want only those that had something left", opened)
	}
	for name, want := range map[string]string{"left-0": "1", "left-4": "5", "nothing": "null", "done": "7"} {
		d, err := c.Database(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, d); got != want {
			t.Errorf("%s holds %s, want %s", name, got, want)
		}
	}
	if lines := strings.Count(log.String(), "written=1 refused=0 kept=0"); lines != 5 || strings.Contains(log.String(), "ERROR") {
		t.Errorf("the log says\n%s", &log)
	}
	log.Reset()
	c.RunLeft(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil)
	if log.Len() > 0 {
		t.Errorf("when nothing is left the log says\n%s", &log)
	}
}

// TestRunLeftGoesOn: a database that cannot be opened, or rows that cannot be read, keep no other
// database from what was left in it; nor does a start hang that is given up.
func TestRunLeftGoesOn(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	c, closeAll := open(t, disk)
	for _, name := range []string{"a-broken", "b-nonsense", "c-well"} {
		leaveNumber(t, create(t, c, name), 1)
	}
	closeAll()
	s, err := store.Open("data", store.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	plant := func(name string, settings store.Settings, rows ...store.LeftRow) {
		t.Helper()
		id, _, err := s.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.BuildSettings(s.Live(id), tree.Change{Position: 1}, settings, nil)
		done := make(shown)
		if err = errors.Join(err, b.Left(rows), s.Commit(b, done)); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	plant("a-broken", store.Settings{"rules": []byte("?")})
	var nonsense []store.LeftRow
	for i := range 30 {
		nonsense = append(nonsense, store.LeftRow{Connection: fmt.Sprintf("-nonsense%011d", i), Number: 1, Value: []byte("?")})
	}
	plant("b-nonsense", nil, nonsense...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	c, closeAll = open(t, disk)
	defer closeAll()
	var log bytes.Buffer
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.RunLeft(ended, slog.New(slog.NewTextHandler(&log, nil)), nil)
	c.RunLeft(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil)
	for _, name := range []string{"b-nonsense", "c-well"} {
		d, err := c.Database(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, d); got != "1" {
			t.Errorf("%s holds %s, want 1", name, got)
		}
	}
	text := log.String()
	if !strings.Contains(text, "the database cannot be opened\" database=a-broken") {
		t.Errorf("the log does not say that a-broken cannot be opened:\n%s", text)
	}
	if n := strings.Count(text, "level=ERROR"); n != 1+10 {
		t.Errorf("the log has %d errors, want 11:\n%s", n, text)
	}
}

type shown chan struct{}

func (shown) Durable(uint64) {}
func (s shown) Visible()     { close(s) }
