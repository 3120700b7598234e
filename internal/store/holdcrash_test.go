package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	slashpath "path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/logkeep"
	"github.com/livetree/livetree/internal/tree"
)

var holdCrashes = flag.Int("hold.crashes", 6, "how many power cuts the test of holds makes")

// crashLives is how many power cuts one store survives in the test of holds.
const crashLives = 6

// TestHoldCrashes cuts the power at random operations of the disk, while three holders read and
// release records at different paces and the log is trimmed as much as it may be. After each cut all
// that a holder has not released is there, whole; what it had read before is the same; and in the end
// the records of each make the same store again.
func TestHoldCrashes(t *testing.T) {
	t.Parallel()
	cuts, read := 0, 0
	for cuts < *holdCrashes {
		c := newHoldCrash(t, rand.Uint64())
		for range crashLives {
			c.live()
		}
		c.end()
		cuts += crashLives
		for _, h := range c.holders {
			read += h.reads
		}
		if t.Failed() {
			t.Fatalf("seed %d", c.seed)
		}
	}
	if read == 0 {
		t.Error("nothing was read: this test saw nothing")
	}
	figures.Report(t, "holdcrashes", proof.Count("cuts", cuts), proof.Count("records", read))
}

// A holdCrash is a store whose power is cut, and those who hold it.
type holdCrash struct {
	*testing.T
	seed    uint64
	rng     *rand.Rand
	opts    Options
	disk    *vfs.MemFS
	store   *Store
	holders []*holder

	left atomic.Int64      // operations of the disk until the cut
	cfg  vfs.CrashCloneCfg // what the cut leaves
	done atomic.Bool       // it was made

	mu    sync.Mutex
	acked map[layout.ID]uint64 // positions that were acknowledged
	kept  *vfs.MemFS           // what the cut has left
	sure  map[layout.ID]uint64 // acked at the cut
}

// A holder reads the records of a hold and keeps them on another machine. Its lists only grow, but for
// what it did after a cut, which has not happened.
type holder struct {
	name  string
	hold  *journal.Hold
	reads int
	pace  int // it releases once in so many times that it reads

	got   []gotRecord
	notes []gotNote
	// gotAtCut and notedAtCut are how many there were at the cut.
	gotAtCut, notedAtCut int
}

type gotRecord struct {
	id       layout.ID
	name     string
	position uint64
	row      []byte
}

type gotNote struct {
	id       layout.ID
	position uint64
	note     string
}

func newHoldCrash(t *testing.T, seed uint64) *holdCrash {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &holdCrash{
		T: t, seed: seed, rng: rng, disk: vfs.NewCrashableMem(), acked: map[layout.ID]uint64{},
		opts: Options{
			ChunkBytes: limits[rng.IntN(len(limits))], BallastBytes: -1, MemTableBytes: 256 << 10,
			LogKeep: LogKeep{Age: 1, StoreBytes: 1, DatabaseBytes: 1},
		},
	}
	for name, pace := range map[string]int{"often": 1, "seldom": 4, "hardly": 12} {
		c.holders = append(c.holders, &holder{name: name, pace: pace})
	}
	return c
}

// MaybeError implements errorfs.Injector: it never fails, and cuts the power when it is time. As all
// crash tests do, it lets a MANIFEST be there if the marker that names it is.
func (c *holdCrash) MaybeError(op errorfs.Op) error {
	if dir, name := slashpath.Split(op.Path); op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker.manifest.") {
		f, err := c.disk.OpenDir(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || c.left.Add(-1) != 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut()
	return nil
}

func (c *holdCrash) String() string { return "power switch" }

// cut takes a copy of the disk as a power cut would leave it. The lock is held.
func (c *holdCrash) cut() {
	c.sure = maps.Clone(c.acked)
	for _, h := range c.holders {
		h.gotAtCut, h.notedAtCut = len(h.got), len(h.notes)
	}
	c.kept = c.disk.CrashClone(c.cfg)
	c.done.Store(true)
}

// live opens the store, and goes on until the power is cut.
func (c *holdCrash) live() {
	c.Helper()
	c.done.Store(false)
	c.left.Store(0) // none while it is opened and compared
	c.open()
	c.compare()
	c.cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 25 * c.rng.IntN(5), RNG: rand.New(rand.NewPCG(c.seed, c.rng.Uint64()))}
	c.left.Store(1 + int64(c.rng.IntN(300)))
	for i := 0; !c.done.Load() && i < 2000; i++ {
		c.step()
	}
	c.mu.Lock()
	if !c.done.Load() {
		c.left.Store(0)
		c.cut()
	}
	c.mu.Unlock()
	c.close()
	c.disk = c.kept
	for _, h := range c.holders {
		h.got, h.notes = h.got[:h.gotAtCut], h.notes[:h.notedAtCut]
	}
	c.acked = c.sure
}

func (c *holdCrash) open() {
	c.Helper()
	c.opts.FS = errorfs.Wrap(proof.Crashable(c.disk), c)
	var err error
	if c.store, err = Open("data", c.opts); err != nil {
		c.Fatalf("seed %d: %v", c.seed, err)
	}
	c.store.log.Look(new(logkeep.Survey), 1000)
	for _, h := range c.holders {
		if h.hold, err = Hold(c.store, h.name, journal.Options{Bound: 1 << 40}); err != nil {
			c.Fatalf("seed %d: %v", c.seed, err)
		}
		switch state := h.hold.State(); {
		case state == journal.Following:
		case state == journal.Beginning && len(h.got) == 0 && len(c.acked) == 0:
			if err := h.hold.Begin(nil); err != nil {
				c.Fatal(err)
			}
		default:
			c.Fatalf("seed %d: the hold %s is %d after a cut", c.seed, h.name, state)
		}
	}
}

func (c *holdCrash) close() {
	c.Helper()
	for _, h := range c.holders {
		h.hold.Close()
	}
	if err := c.store.Close(); err != nil {
		c.Error(err)
	}
}

// compare holds what is there after a cut against what was acknowledged and read before.
func (c *holdCrash) compare() {
	c.Helper()
	least := maps.Clone(c.acked)
	for _, h := range c.holders {
		for _, g := range h.got {
			if least[g.id] > 0 {
				least[g.id] = max(least[g.id], g.position)
			}
		}
	}
	for id, position := range least {
		if now, err := c.store.Live(id).Position(); err != nil || now < position {
			c.Errorf("seed %d: database %d is at %d, %v, and was at %d", c.seed, id, now, err, position)
		}
	}
	for _, h := range c.holders {
		c.readAll(h, false)
	}
}

// step writes something, or has a holder read, or trims.
func (c *holdCrash) step() {
	c.Helper()
	switch n := c.rng.IntN(20); {
	case n < 4:
		h := c.holders[c.rng.IntN(len(c.holders))]
		c.readAll(h, c.rng.IntN(h.pace) == 0)
	case n < 6:
		c.store.log.Trim()
		c.store.holds.Sweep()
	default:
		c.write()
	}
}

// readAll reads what is pending of a hold, compares it with what was read before, and perhaps releases some.
func (c *holdCrash) readAll(h *holder, release bool) {
	c.Helper()
	var list []journal.Released
	err := h.hold.Pending(func(p journal.Pending) bool {
		if want := h.noteAt(p.DB, p.From-1); string(p.Note) != want {
			c.Errorf("seed %d: %s: the note of database %d at %d is %q, want %q", c.seed, h.name, p.DB, p.From-1, p.Note, want)
		}
		err := h.hold.Read(p.DB, p.From, p.To, func(position uint64, row []byte) error { return c.take(h, p, position, row) })
		if err != nil {
			c.Errorf("seed %d: %s: read database %d from %d to %d: %v", c.seed, h.name, p.DB, p.From, p.To, err)
			return false
		}
		if to := p.From + c.rng.Uint64N(p.To-p.From+2); release && to > p.From { // perhaps not all
			list = append(list, journal.Released{DB: p.DB, Position: to - 1, Note: fmt.Appendf(nil, "%d", c.rng.IntN(1000))})
		}
		return true
	})
	if err != nil {
		c.Errorf("seed %d: %s: %v", c.seed, h.name, err)
		return
	}
	c.mu.Lock()
	for _, r := range list {
		h.notes = append(h.notes, gotNote{r.DB, r.Position, string(r.Note)})
	}
	c.mu.Unlock()
	if err := h.hold.Release(list); err != nil {
		c.Errorf("seed %d: %s: %v", c.seed, h.name, err)
	}
}

// noteAt returns what a holder noted last when it released a position.
func (h *holder) noteAt(id layout.ID, position uint64) string {
	for i := len(h.notes) - 1; i >= 0; i-- {
		if n := h.notes[i]; n.id == id && n.position == position {
			return n.note
		}
	}
	return ""
}

// take keeps a record that was read. One that was read before must be the same, and none is left out.
func (c *holdCrash) take(h *holder, p journal.Pending, position uint64, row []byte) error {
	r, err := layout.DecodeRecord(row, position)
	if err != nil || !r.IsWhole() {
		return fmt.Errorf("the record at %d is not whole: %w", position, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := uint64(0)
	for i := len(h.got) - 1; i >= 0; i-- {
		g := h.got[i]
		if g.id != p.DB {
			continue
		}
		newest = max(newest, g.position)
		if g.position == position {
			if !bytes.Equal(g.row, row) || g.name != p.Name {
				return fmt.Errorf("the record at %d is not the one that was read before the cut", position)
			}
			return nil
		}
	}
	if position != newest+1 {
		return fmt.Errorf("%d is read after %d", position, newest)
	}
	h.reads++
	h.got = append(h.got, gotRecord{p.DB, p.Name, position, bytes.Clone(row)})
	return nil
}

// write makes a commit, a database, or drops one. Some are not waited for.
func (c *holdCrash) write() {
	c.Helper()
	names := databaseNames(c.T, c.store)
	if len(names) == 0 || len(names) < 3 && c.rng.IntN(10) == 0 {
		if _, err := c.store.Create(fmt.Sprintf("db-%d", c.rng.Uint64())); err != nil {
			c.Fatal(err)
		}
		return
	}
	name := names[c.rng.IntN(len(names))]
	id, _, err := c.store.Find(name)
	if err != nil {
		c.Fatal(err)
	}
	if c.rng.IntN(40) == 0 {
		if err := c.store.Drop(name); err != nil {
			c.Fatal(err)
		}
		c.mu.Lock()
		delete(c.acked, id)
		c.mu.Unlock()
		return
	}
	c.commit(id)
}

// commit makes a random commit: a small or a large write, or settings.
func (c *holdCrash) commit(id layout.ID) {
	c.Helper()
	position, err := c.store.Live(id).Position()
	if err != nil {
		c.Fatal(err)
	}
	db := &stand{TB: c.T, Store: c.store, id: id, position: position, author: tree.Author{By: tree.ByUID, UID: "ann"}}
	h := &history{t: c.T, rng: c.rng}
	var b *Batch
	switch c.rng.IntN(6) {
	case 0:
		change := tree.Change{Position: position + 1, Millis: c.store.opts.Now().UnixMilli(), Settings: true}
		b, err = c.store.BuildSettings(c.store.Live(id), change, Settings{"rules": bytes.Repeat([]byte("rule "), c.rng.IntN(30000))}, nil)
		if err != nil {
			c.Fatal(err)
		}
	case 1: // more than a log row holds
		b = db.build(putWrite(db, h.path(), `"`+strings.Repeat(fmt.Sprint(c.rng.Uint64()), layout.MaxLogged/10)+`"`))
	default:
		b = db.build(putWrite(db, h.path(), h.value()))
	}
	done := make(visible)
	if err := c.store.Commit(b, done); err != nil {
		c.Fatal(err)
	}
	if c.rng.IntN(3) == 0 {
		return // it may be lost
	}
	<-done
	c.mu.Lock()
	c.acked[id] = position + 1
	c.mu.Unlock()
}

// end has every holder read the rest, and makes a store of what each has got.
func (c *holdCrash) end() {
	c.Helper()
	c.left.Store(0)
	c.open()
	c.compare()
	useDatabase(c.T, c.store, "last").put("a", `1`) // so that views show all
	for _, h := range c.holders {
		c.readAll(h, false)
		c.rebuild(h)
	}
	for _, h := range c.holders {
		if err := c.releaseAll(h); err != nil {
			c.Error(err)
		}
	}
	if n, m := records(c.T, c.store), droppedRows(c.T, c.store); n != 0 || m != 0 {
		c.Errorf("seed %d: %d records and %d dropped databases are left", c.seed, n, m)
	}
	for _, h := range c.holders {
		h.hold.Close()
	}
	checkStore(c.T, c.store, c.disk)
}

// releaseAll releases what a holder has read.
func (c *holdCrash) releaseAll(h *holder) error {
	var list []journal.Released
	err := h.hold.Pending(func(p journal.Pending) bool {
		list = append(list, journal.Released{DB: p.DB, Position: p.To})
		return true
	})
	if err != nil {
		return err
	}
	return h.hold.Release(list)
}

// rebuild makes a store of all that a holder has got, and compares it.
func (c *holdCrash) rebuild(h *holder) {
	c.Helper()
	into, err := Open("copy", Options{FS: vfs.NewMem(), BallastBytes: -1})
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = into.Close() }()
	f := &follower{t: c.T, of: c.store, into: into, ids: map[layout.ID]layout.ID{}, names: map[layout.ID]string{}}
	for _, g := range h.got {
		if f.ids[g.id] == 0 {
			f.create(journal.Pending{DB: g.id, Name: g.name})
		}
		if err := f.replay(g.id, g.position, g.row); err != nil {
			c.Fatalf("seed %d: %s: database %d at %d: %v", c.seed, h.name, g.id, g.position, err)
		}
	}
	want, got := content(c.T, c.store), content(c.T, into)
	for name := range want {
		if want[name] == "at 0: null" {
			delete(want, name) // it has no record
		}
	}
	if !maps.Equal(want, got) {
		c.Errorf("seed %d: the records of %s do not make the same store", c.seed, h.name)
	}
}

// TestHoldSheds: when the disk has little space left, holds that keep much are given up, and what they kept is
// deleted, so that writes can go on. A hold that keeps little goes on.
func TestHoldSheds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		s := newStand(t, Options{FS: disk, LogKeep: LogKeep{StoreBytes: 1}})
		disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 100 * gibibyte, AvailBytes: 90 * gibibyte})
		s.holds.ShedBytes = mebibyte
		large := follow(t, s.Store, 1<<40)
		defer large.hold.Close()
		text := randomText(2 * layout.MaxLogged)
		for i := range 20 {
			s.put(fmt.Sprint("a", i), `"`+text+`"`)
		}
		kept, _ := large.hold.Stats()
		small, err := Hold(s.Store, "small", journal.Options{Bound: 1 << 40})
		if err == nil {
			err = small.Begin(large.positions())
		}
		if err != nil {
			t.Fatal(err)
		}
		defer small.Close()
		s.put("big", `"`+text+`"`)
		s.put("a", `1`)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		if large.hold.State() != journal.Following || records(t, s.Store) != 21 {
			t.Fatalf("with enough space a hold is %d, and there are %d records of %d bytes", large.hold.State(), records(t, s.Store), kept)
		}
		disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 100 * gibibyte, AvailBytes: mebibyte})
		time.Sleep(3 * keeperInterval) //nolint:forbidigo // fake time
		if err := large.hold.Wait(t.Context()); !errors.Is(err, journal.ErrLost) {
			t.Errorf("a hold of %d bytes is kept with little space: %v", kept, err)
		}
		if n := records(t, s.Store); n != 1 {
			t.Errorf("%d records are left, want the one that the other hold needs", n)
		}
		read := 0
		err = small.Pending(func(p journal.Pending) bool {
			err = small.Read(p.DB, p.From, p.To, func(uint64, []byte) error { read++; return nil })
			return err == nil
		})
		if err != nil || read != 2 {
			t.Errorf("the other hold reads %d records, %v, want 2", read, err)
		}
		if s.holds.Shed() {
			t.Error("a hold that keeps little was given up")
		}
	})
}
