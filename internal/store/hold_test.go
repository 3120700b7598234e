package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/logkeep"
	"github.com/livetree/livetree/internal/tree"
)

// A follower reads the records of a store, and makes another store of them.
type follower struct {
	t     testing.TB
	hold  *journal.Hold
	of    *Store
	into  *Store
	ids   map[layout.ID]layout.ID // numbers in the other store
	names map[layout.ID]string
	notes map[layout.ID][]byte
	read  int
}

// follow begins a hold on an empty store.
func follow(t testing.TB, of *Store, bound int64) *follower {
	t.Helper()
	into, err := Open("copy", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = into.Close() })
	f := &follower{t: t, of: of, into: into, ids: map[layout.ID]layout.ID{}, names: map[layout.ID]string{}, notes: map[layout.ID][]byte{}}
	f.open(bound)
	return f
}

func (f *follower) open(bound int64) {
	f.t.Helper()
	var err error
	if f.hold, err = Hold(f.of, "test", journal.Options{Bound: bound}); err != nil {
		f.t.Fatal(err)
	}
	if f.hold.State() == journal.Beginning && len(f.ids) == 0 {
		if err := f.hold.Begin(f.positions()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// positions returns where all databases are.
func (f *follower) positions() (list []journal.Released) {
	f.t.Helper()
	v := f.of.View()
	defer v.Release()
	if err := f.of.Names(func(_ string, id layout.ID) bool {
		position, err := v.Tree(id).Position()
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, journal.Released{DB: id, Position: position})
		return true
	}); err != nil {
		f.t.Fatal(err)
	}
	return list
}

// catchUp replays what is pending, and releases it.
func (f *follower) catchUp() error {
	f.t.Helper()
	var released []journal.Released
	var failed error
	err := f.hold.Pending(func(p journal.Pending) bool {
		if !bytes.Equal(p.Note, f.notes[p.DB]) {
			f.t.Errorf("the note of %s is %x, want %x", p.Name, p.Note, f.notes[p.DB])
		}
		if f.ids[p.DB] == 0 {
			f.create(p)
		}
		if f.names[p.DB] != p.Name {
			f.t.Errorf("database %d is called %q, and was %q", p.DB, p.Name, f.names[p.DB])
		}
		failed = f.hold.Read(p.DB, p.From, p.To, func(position uint64, row []byte) error {
			f.read++
			return f.replay(p.DB, position, row)
		})
		f.notes[p.DB] = fmt.Appendf(nil, "note %d", p.To)
		released = append(released, journal.Released{DB: p.DB, Position: p.To, Note: f.notes[p.DB]})
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return f.hold.Release(released)
}

func (f *follower) create(p journal.Pending) {
	f.t.Helper()
	id, err := f.into.Create(p.Name)
	if err != nil {
		f.t.Fatal(err)
	}
	f.ids[p.DB], f.names[p.DB] = id, p.Name
}

// replay makes one commit again.
func (f *follower) replay(db layout.ID, position uint64, row []byte) error {
	r, err := layout.DecodeRecord(row, position)
	if err != nil {
		return err
	}
	if !r.IsWhole() {
		return fmt.Errorf("the record at %d is not whole", position)
	}
	id := f.ids[db]
	var b *Batch
	switch {
	case r.Dropped:
		b, err = f.into.BuildDrop(f.names[db], id, r.Change)
	case r.Settings:
		b, err = f.into.BuildSettings(f.into.Live(id), r.Change, r.Values, nil)
	default:
		b, err = f.into.Build(f.into.Live(id), r.Change, nil, nil, nil)
	}
	if err != nil {
		return err
	}
	done := make(visible)
	if err := f.into.Commit(b, done); err != nil {
		return err
	}
	<-done
	return nil
}

// content returns all that a store holds, by the names of databases.
func content(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := s.Names(func(name string, id layout.ID) bool {
		db := &stand{TB: t, Store: s, id: id}
		position, err := s.Live(id).Position()
		if err != nil {
			t.Fatal(err)
		}
		settings, err := s.Live(id).Settings()
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("at %d: ", position)
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			text += fmt.Sprintf("%s=%q ", name, settings[name])
		}
		all[name] = text + db.export("/")
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// same wants the two stores to hold the same.
func (f *follower) same(when string) {
	f.t.Helper()
	want, got := content(f.t, f.of), content(f.t, f.into)
	if maps.Equal(want, got) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if d := firstDifference(got[name], want[name]); d != "" {
			f.t.Errorf("%s: database %s: %s", when, name, d)
		}
	}
	f.t.Errorf("%s: the databases are %q, want %q", when, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
}

// spaceRows returns how many rows a space has.
func spaceRows(t testing.TB, s *Store, from, to []byte) (n int) {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func records(t testing.TB, s *Store) int {
	t.Helper()
	return spaceRows(t, s, []byte{layout.SpaceRecord}, []byte{layout.SpaceRecord + 1})
}

func droppedRows(t testing.TB, s *Store) int {
	t.Helper()
	from, to := layout.DroppedRange()
	return spaceRows(t, s, from, to)
}

// A history makes random commits in some databases.
type history struct {
	t     testing.TB
	rng   *rand.Rand
	store *Store
	next  int
}

func (h *history) value() string {
	switch h.rng.IntN(8) {
	case 0:
		return `null`
	case 1:
		return fmt.Sprintf(`"%s"`, strings.Repeat("long ", h.rng.IntN(20000)))
	case 2:
		return numbered(1 + h.rng.IntN(2000))
	case 3:
		return fmt.Sprintf(`{".value":%d,".priority":%d}`, h.rng.IntN(9), h.rng.IntN(3))
	case 4:
		return fmt.Sprintf(`{".priority":"p","x":{"y":%d},"7":[1,2,null,4]}`, h.rng.IntN(9))
	}
	return fmt.Sprint(h.rng.IntN(100))
}

func (h *history) path() string {
	return []string{"/", "a", "a/b", "a/b/7", "c", "c/x/y", "big", "big/k000003"}[h.rng.IntN(8)]
}

// step makes one commit, or makes or drops a database.
func (h *history) step() {
	names := databaseNames(h.t.(*testing.T), h.store)
	if len(names) == 0 || len(names) < 4 && h.rng.IntN(20) == 0 {
		h.next++
		if _, err := h.store.Create(fmt.Sprintf("db-%d", h.next)); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	name := names[h.rng.IntN(len(names))]
	if h.rng.IntN(30) == 0 {
		if err := h.store.Drop(name); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	db := useDatabase(h.t, h.store, name)
	db.author = tree.Author{By: tree.ByUID, UID: fmt.Sprint("user", h.rng.IntN(9))}
	switch h.rng.IntN(8) {
	case 0:
		db.set(Settings{"rules": fmt.Append(nil, h.rng.IntN(99)), "gone": nil})
	case 1:
		db.set(Settings{"gone": bytes.Repeat([]byte("setting "), h.rng.IntN(3000))})
	case 2:
		db.patch("a", fmt.Sprintf(`{"b":%s,"c/d":%d,"e":null}`, h.value(), h.rng.IntN(9)))
	case 3:
		db.commit(priorityWrite(h.t, h.path(), int64(h.rng.IntN(5))))
	case 4:
		db.putPrepared(putWrite(db, h.path(), h.value()))
	default:
		db.put(h.path(), h.value())
	}
}

// putPrepared commits a write whose large nodes are encoded before.
func (s *stand) putPrepared(w tree.Write) {
	s.Helper()
	prepared, err := s.Live(s.id).Prepare(w, s.indexes, 100)
	if err != nil {
		s.Fatal(err)
	}
	defer prepared.Close()
	s.commitPrepared(w, prepared)
}

// TestHoldHistories: the records of random histories make the same store again, also over
// restarts, while the log is trimmed as much as it may be.
func TestHoldHistories(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			mem := vfs.NewMem()
			opts := Options{FS: mem, ChunkBytes: limits[rng.IntN(len(limits))], LogKeep: LogKeep{Age: 1, StoreBytes: 1, DatabaseBytes: 1}}
			s, err := Open("data", opts)
			if err != nil {
				t.Fatal(err)
			}
			f := follow(t, s, 1<<40)
			h := &history{t: t, rng: rng, store: s}
			for i := range 150 {
				h.step()
				switch rng.IntN(12) {
				case 0, 1:
					if err := f.catchUp(); err != nil {
						t.Fatalf("after %d steps: %v", i, err)
					}
				case 2:
					s.log.Trim()
					s.holds.Sweep()
				case 3:
					f.hold.Close()
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if s, err = Open("data", opts); err != nil {
						t.Fatal(err)
					}
					h.store, f.of = s, s
					s.log.Look(new(logkeep.Survey), 1000)
					f.open(1 << 40)
					if state := f.hold.State(); state != journal.Following {
						t.Fatalf("after a restart the hold is %d", state)
					}
				}
			}
			useDatabase(t, s, "last").put("a", `1`) // new databases are told with a view
			if err := f.catchUp(); err != nil {
				t.Fatal(err)
			}
			f.same("at the end")
			if n, m := records(t, s), droppedRows(t, s); n != 0 || m != 0 {
				t.Errorf("%d records and %d dropped databases are left", n, m)
			}
			if n, lost := f.hold.Stats(); n != 0 || lost {
				t.Errorf("%d bytes are held, lost: %t", n, lost)
			}
			checkStore(t, s, mem)
		})
	}
}

// checkStore closes a store and checks all of it.
func checkStore(t *testing.T, s *Store, fs vfs.FS) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := OpenArchive("data", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	report := func(f inspect.Flaw) bool {
		t.Errorf("the check says %v", f.Err)
		return true
	}
	if err := a.CheckDirectory(report); err != nil {
		t.Error(err)
	}
	if err := a.Names(func(_ string, id layout.ID) bool { return a.CheckLog(id, report) == nil }); err != nil {
		t.Error(err)
	}
}

// TestHoldKeeps: what is not released stays, whatever LogKeep says, and only that.
func TestHoldKeeps(t *testing.T) {
	t.Parallel()
	mem, now := vfs.NewMem(), newClock()
	s := openStand(t, Options{FS: mem, Now: now.now, LogKeep: LogKeep{Age: time.Second}})
	other := useDatabase(t, s.Store, "other")
	other.puts(10, 10)
	follow(t, s.Store, 1<<40)
	s.puts(100, 100)
	s.put("big", `"`+strings.Repeat("x", layout.MaxLogged)+`"`)
	s.set(Settings{"rules": []byte("{}")})
	if n := records(t, s.Store); n != 2 {
		t.Errorf("%d whole records, want those of the large write and of the settings", n)
	}
	now.advance(time.Hour)
	s.log.Trim()
	s.holds.Sweep()
	s.put("a", `1`) // so that a view shows it
	if _, n := s.logged(); n != 103 {
		t.Errorf("%d rows are left of a log that is held, want 103", n)
	}
	if _, n := other.logged(); n != 1 {
		t.Errorf("%d rows are left of a log that is not held, want 1", n)
	}
	checkStore(t, s.Store, mem)
}

// TestHoldIsLost: with more than its bound a hold is lost, and keeps nothing. It begins
// again with a new base.
func TestHoldIsLost(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := newStand(t, Options{Now: now.now, LogKeep: LogKeep{Age: time.Second}})
	f := follow(t, s.Store, 200<<10)
	gone := useDatabase(t, s.Store, "gone")
	gone.put("a", `1`)
	if err := s.Drop("gone"); err != nil {
		t.Fatal(err)
	}
	if n := droppedRows(t, s.Store); n != 1 {
		t.Errorf("%d dropped databases are kept, want 1", n)
	}
	for range 4 {
		s.put("a", `"`+randomText(80<<10)+`"`)
	}
	if _, lost := f.hold.Stats(); !lost || f.hold.Wait(t.Context()) == nil || !errors.Is(f.catchUp(), journal.ErrLost) {
		t.Error("the hold is not lost")
	}
	now.advance(time.Hour)
	s.log.Trim()
	s.holds.Sweep()
	s.put("a", `1`)
	if n, m := records(t, s.Store), droppedRows(t, s.Store); n != 0 || m != 0 {
		t.Errorf("%d records and %d dropped databases are left", n, m)
	}
	if _, n := s.logged(); n != 2 {
		t.Errorf("%d rows are left, want 2", n)
	}
	if err := f.hold.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := f.hold.Begin(f.positions()); err != nil {
		t.Fatal(err)
	}
	s.set(Settings{"rules": []byte("{}")})
	n := 0
	if err := f.hold.Pending(func(p journal.Pending) bool {
		if err := f.hold.Read(p.DB, p.From, p.To, func(uint64, []byte) error { n++; return nil }); err != nil {
			t.Error(err)
		}
		return true
	}); err != nil || n != 1 {
		t.Errorf("%d records were read, %v, want 1", n, err)
	}
	f.hold.Close()
}

func randomText(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + rand.IntN(26))
	}
	return string(text)
}

// TestHoldNoticesHoles: commits that were made without the hold are not passed over.
func TestHoldNoticesHoles(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *stand){
		"a small write":   func(s *stand) { s.put("a", `2`) },
		"a large write":   func(s *stand) { s.put("a", `"`+strings.Repeat("x", layout.MaxLogged)+`"`) },
		"settings":        func(s *stand) { s.set(Settings{"rules": nil}) },
		"a trimmed write": func(s *stand) { s.puts(5, 10); s.log.Trim(); s.put("a", `1`) },
		"a drop": func(s *stand) {
			if err := s.Drop("db"); err != nil {
				s.Fatal(err)
			}
		},
		"nothing": func(s *stand) { s.log.Trim(); s.holds.Sweep() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, Options{LogKeep: LogKeep{StoreBytes: 1}})
			f := follow(t, s.Store, 1<<40)
			s.put("a", `1`)
			if err := f.catchUp(); err != nil {
				t.Fatal(err)
			}
			f.hold.Close()
			meanwhile(s)
			f.open(1 << 40)
			defer f.hold.Close()
			err := f.catchUp()
			follows := name == "a small write" || name == "nothing"
			if follows != (err == nil && f.hold.State() == journal.Following) {
				t.Errorf("the hold is %d, %v", f.hold.State(), err)
			}
			if follows {
				f.same(name)
			}
		})
	}
}

// TestHoldNotes keeps a note on all databases, also over a restart.
func TestHoldNotes(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	f := follow(t, s.Store, 1<<40)
	noted := func(want string) {
		t.Helper()
		if got, err := f.hold.Note(); err != nil || string(got) != want {
			t.Errorf("the note is %q, %v, want %q", got, err, want)
		}
	}
	noted("")
	if err := f.hold.SetNote([]byte("one")); err != nil {
		t.Fatal(err)
	}
	noted("one")
	s.put("a", `1`)
	if n, oldest := f.hold.Waiting(); n != 1 || oldest.IsZero() {
		t.Errorf("%d databases wait, since %s, want one", n, oldest)
	}
	if err := f.catchUp(); err != nil {
		t.Fatal(err)
	}
	if n, oldest := f.hold.Waiting(); n != 0 || !oldest.IsZero() {
		t.Errorf("%d databases wait, since %s, want none", n, oldest)
	}
	if err := f.hold.Release([]journal.Released{{Note: []byte("two")}}); err != nil {
		t.Fatal(err)
	}
	noted("two")
	f.hold.Close()
	if err := f.hold.SetNote([]byte("three")); err == nil {
		t.Error("a hold that was closed takes a note")
	}
	f = follow(t, s.Store, 1<<40)
	defer f.hold.Close()
	noted("two")
	if f.hold.State() != journal.Following {
		t.Error("the hold does not follow any more")
	}
}

// TestReleaseRefuses what was not read.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	f := follow(t, s.Store, 1<<40)
	defer f.hold.Close()
	s.put("a", `1`)
	for _, r := range []journal.Released{{DB: s.id, Position: 1}, {DB: s.id + 1, Position: 0}} {
		if err := f.hold.Release([]journal.Released{r}); err == nil {
			t.Errorf("%+v was released, but not read", r)
		}
	}
	if err := f.catchUp(); err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(s.Store, "test", journal.Options{}); err == nil {
		t.Error("there are two holds of one name")
	}
	if err := f.hold.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 { // it may have been woken before
		_ = f.hold.Wait(ctx)
	}
	if err := f.hold.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait() = %v", err)
	}
}
