package server

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An archiveStand is a store that is archived as a server does it.
type archiveStand struct {
	testing.TB
	place     string
	data      string
	store     *store.Store
	databases *catalog.Catalog
	archiving *archiving
}

// newArchiveStand begins to archive a new store into a directory.
func newArchiveStand(t *testing.T, place string) *archiveStand {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	s, err := store.Open(data, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Data: data, Logger: slog.New(slog.DiscardHandler), Archive: Archive{URL: "file://" + place, Keep: time.Hour, Spool: 1 << 20, PastBytes: 1 << 30}}
	a, err := newArchiving(t.Context(), c, s)
	if err != nil {
		t.Fatal(err)
	}
	b := &archiveStand{TB: t, place: place, data: data, store: s, archiving: a}
	b.databases = catalog.New(s, engine.Options{
		Clock: state.NewClock(time.Now, strings.NewReader(strings.Repeat("x", 1000)), 0), Deadline: enginetest.Unhurried,
	})
	a.start()
	t.Cleanup(func() {
		a.stop()
		b.databases.Close()
		_ = s.Close()
	})
	wait(t, "the first base", func() bool { return a.archiver.Status().Bases > 0 })
	return b
}

// found makes a database with a value, and returns when that was there.
func (b *archiveStand) found(name string, value int) (*engine.Database, time.Time) {
	b.Helper()
	d, err := b.databases.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	return d, b.put(d, value)
}

// put writes a value, and returns a time at which it is there and nothing later.
func (b *archiveStand) put(d *engine.Database, value int) time.Time {
	b.Helper()
	return b.putText(d, fmt.Sprint(value))
}

// putText is put of JSON.
func (b *archiveStand) putText(d *engine.Database, text string) time.Time {
	b.Helper()
	w, err := enginetest.DecodePut(tree.Path{}, text)
	if err == nil {
		_, err = d.Write(b.Context(), engine.Request{Write: w, Who: enginetest.Admin})
	}
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(3 * time.Millisecond) //nolint:forbidigo // the next commit is at another time
	at := time.Now()
	time.Sleep(3 * time.Millisecond) //nolint:forbidigo // as before
	return at
}

// open returns a database as it was at a moment. On a busy machine the archive may be behind for longer than a look waits for it.
func (b *archiveStand) open(d *engine.Database, at time.Time) (was *engine.Database, leave func(), err error) {
	b.Helper()
	for late := time.Now().Add(patience); ; {
		was, leave, err = b.archiving.open()(b.Context(), d, at)
		if fault.KindOf(err) != fault.Unavailable || time.Now().After(late) {
			return was, leave, err
		}
	}
}

// at returns the value that a database had.
func (b *archiveStand) at(d *engine.Database, at time.Time) (int64, error) {
	b.Helper()
	was, leave, err := b.open(d, at)
	if err != nil {
		return 0, err
	}
	defer leave()
	v := was.View()
	defer v.Close()
	n, err := v.Tree().Node(tree.Path{}, 1000)
	return n.Leaf().Int(), err
}

// expect looks at a moment.
func (b *archiveStand) expect(d *engine.Database, at time.Time, want int64) {
	b.Helper()
	if got, err := b.at(d, at); err != nil || got != want {
		b.Errorf("at %s there is %d, %v; want %d", at.Format(time.StampMicro), got, err, want)
	}
}

// expectNone looks at a moment of which nothing may be seen. The error tells nothing of the
// archive.
func (b *archiveStand) expectNone(d *engine.Database, at time.Time) {
	b.Helper()
	got, err := b.at(d, at)
	if fault.KindOf(err) != fault.Invalid {
		b.Errorf("at %s there is %d, %v", at.Format(time.StampMicro), got, err)
	}
	if text := fault.Public(err); strings.Contains(text, b.place) || strings.Contains(text, "lines/") {
		b.Errorf("it is told that %s", text)
	}
}

// TestPast: a server shows what a database was, also what was committed just now.
func TestPast(t *testing.T) {
	t.Parallel()
	b := newArchiveStand(t, t.TempDir())
	began := time.Now().Add(-time.Millisecond) // commits have times of whole milliseconds
	d, first := b.found("a", 1)
	second := b.put(d, 2)
	b.expect(d, first, 1)
	b.expect(d, second, 2)
	b.expect(d, first, 1)
	b.expectNone(d, began)
}

// TestOutlinesOfThePast: what was counted at one moment is not told of a later one, which is made from it.
func TestOutlinesOfThePast(t *testing.T) {
	t.Parallel()
	b := newArchiveStand(t, t.TempDir())
	d, _ := b.found("a", 1)
	outlines := rows.NewOutlines(rows.DefaultOutlineBound())
	text := ""
	for count := 1; count <= 3; count++ {
		text += fmt.Sprintf(`,"k%d":%d`, count, count)
		at := b.putText(d, "{"+text[1:]+"}")
		was, leave, err := b.open(d, at)
		if err != nil {
			t.Fatal(err)
		}
		outline, err := outlines.Of(was, tree.Path{}, 10, nil)
		leave()
		if err != nil || outline.Count != count {
			t.Errorf("an outline of %d children counts %d, %v", count, outline.Count, err)
		}
	}
}

// TestPastWithIndexes: a moment whose indexes were built when it was looked at is not what a later moment is made from.
func TestPastWithIndexes(t *testing.T) {
	t.Parallel()
	b := newArchiveStand(t, t.TempDir())
	d, _ := b.found("a", 0)
	if _, err := d.SetRules(b.Context(), `{"rules":{"list":{".indexOn":"n"}}}`); err != nil {
		t.Fatal(err)
	}
	if err := enginetest.WaitForIndexes(b.Context(), d); err != nil {
		t.Fatal(err)
	}
	for value := 1; value <= 3; value++ {
		at := b.put(d, value)
		b.expect(d, at, int64(value))
		was, leave, err := b.open(d, at)
		if err != nil {
			t.Fatal(err)
		}
		err = enginetest.WaitForIndexes(b.Context(), was)
		leave()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPastOfOthers: who has a database that was made again sees nothing of the one that had its
// name before.
func TestPastOfOthers(t *testing.T) {
	t.Parallel()
	b := newArchiveStand(t, t.TempDir())
	_, first := b.found("a", 1)
	if err := b.databases.Drop("a"); err != nil {
		t.Fatal(err)
	}
	d, second := b.found("a", 2)
	b.expect(d, second, 2)
	b.expectNone(d, first)
}

// TestPastDamaged: what will not change is not answered as if it would, and says nothing of the
// archive's objects.
func TestPastDamaged(t *testing.T) {
	t.Parallel()
	b := newArchiveStand(t, t.TempDir())
	d, first := b.found("a", 1)
	b.expect(d, first, 1)
	second := b.put(d, 2)
	if err := b.archiving.catchUp(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(b.place, "lines", "*", "segments", "*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, name := range segments {
		if err := os.WriteFile(name, []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.expectNone(d, second)
	if left, err := os.ReadDir(filepath.Join(b.data, pastDir)); err != nil || len(left) > 0 {
		t.Errorf("%v are left of it, %v", left, err)
	}
}
