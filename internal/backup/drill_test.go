package backup_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/store"
)

var drillBackups = flag.Int("drill.backups", 4, "how many backups the drill takes and restores")

// A noted is a write that was acknowledged.
type noted struct {
	position uint64
	at, body string
}

// A book is what its witnesses know of a database.
type book struct {
	mu     sync.Mutex
	writes []noted
	acked  atomic.Uint64 // the highest position that was acknowledged
}

func (b *book) note(w noted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes = append(b.writes, w)
	b.acked.Store(max(b.acked.Load(), w.position))
}

// texts returns what the database holds at some positions, by the model.
func (b *book) texts(t testing.TB, positions []uint64) map[uint64]string {
	t.Helper()
	slices.SortFunc(b.writes, func(a, b noted) int { return cmp.Compare(a.position, b.position) })
	texts := map[uint64]string{0: "null"}
	m := model.New()
	for i, w := range b.writes {
		if w.position != uint64(i+1) {
			t.Fatalf("position %d follows %d writes", w.position, i)
		}
		if err := m.Put(strings.Split(w.at, "/"), []byte(w.body), 0); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(positions, w.position) {
			texts[w.position] = m.Export(nil)
		}
	}
	return texts
}

var drillNames = []string{"a", "b", "c"}

// A drill writes to several databases while backups are taken.
type drill struct {
	*stand
	books map[string]*book
	stop  atomic.Bool
	// chain is what one client has written to one database after the other.
	chain []link
	done  sync.WaitGroup
}

type link struct {
	name     string
	position uint64
}

func (d *drill) write(rng *rand.Rand, name string) uint64 {
	at := fmt.Sprintf("k%d/%d", rng.IntN(12), rng.IntN(12))
	body := fmt.Sprintf(`{"n":%d,".priority":%d,"text":%q}`, rng.IntN(1000), rng.IntN(5), strings.Repeat("ab", rng.IntN(60)))
	switch rng.IntN(10) {
	case 0:
		body = "null"
	case 1:
		at, body = at[:strings.Index(at, "/")], `{"5":{"x":true},"6":"short"}`
	}
	position := d.put(name, at, body)
	if position == 0 { // there was nothing to delete
		return 0
	}
	d.books[name].note(noted{position, at, body})
	return position
}

func (d *drill) start(seed uint64) {
	for i, name := range slices.Repeat(drillNames, 3) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		d.done.Go(func() {
			for !d.stop.Load() {
				d.write(rng, name)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	d.done.Go(func() {
		for i := 0; !d.stop.Load(); i++ {
			name := drillNames[i%len(drillNames)]
			if position := d.write(rng, name); position > 0 {
				d.chain = append(d.chain, link{name, position})
			}
		}
	})
}

// TestDrill takes backups under load and restores them. Each must be the original
// at the positions of its manifest, as the witnesses saw it; hold all that was
// acknowledged before it was begun; and be a prefix of the order of commits.
func TestDrill(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	// A small memtable: tables come and go while the backups are taken.
	opts := store.Options{ChunkBytes: 64, MemTableBytes: 256 << 10}
	d := &drill{stand: openStand(t, filepath.Join(t.TempDir(), "data"), opts), books: map[string]*book{}}
	for _, name := range drillNames {
		d.books[name] = &book{}
		d.database(name)
	}
	var backups []taken
	d.start(seed)
	var seen uint64
	for range *drillBackups {
		for d.books["a"].acked.Load() == seen && !d.Failed() { // so that something is written between two
			<-time.After(time.Millisecond)
		}
		b := taken{before: map[string]uint64{}}
		for _, name := range drillNames {
			b.before[name] = d.books[name].acked.Load()
		}
		seen = b.before["a"]
		b.dir, b.Manifest = d.take()
		backups = append(backups, b)
	}
	d.stop.Store(true)
	d.done.Wait()
	texts := d.texts(backups)
	for i, b := range backups {
		d.checkManifest(i, b, texts)
		d.checkChain(i, b)
		d.checkRestored(i, b, texts)
	}
	last := backups[len(backups)-1]
	if last.before["a"] == 0 || last.Group <= backups[0].Group {
		t.Error("nothing was written during the backups")
	}
}

// A taken is a backup, with what was acknowledged before it was begun.
type taken struct {
	dir    string
	before map[string]uint64
	backup.Manifest
}

// position returns that of a database in the backup.
func (b taken) position(name string) uint64 {
	for _, d := range b.Databases {
		if d.Name == name {
			return d.Position
		}
	}
	return 0
}

// texts returns what each database held at the positions of the backups.
func (d *drill) texts(backups []taken) map[string]map[uint64]string {
	texts := map[string]map[uint64]string{}
	for _, name := range drillNames {
		var positions []uint64
		for _, b := range backups {
			positions = append(positions, b.position(name))
		}
		texts[name] = d.books[name].texts(d, positions)
	}
	return texts
}

func (d *drill) checkManifest(i int, b taken, texts map[string]map[uint64]string) {
	d.Helper()
	if len(b.Databases) != len(drillNames) {
		d.Errorf("backup %d has the databases %v", i, b.Databases)
	}
	for _, have := range b.Databases {
		if have.Position < b.before[have.Name] {
			d.Errorf("backup %d has position %d of %s, but %d was acknowledged before", i, have.Position, have.Name, b.before[have.Name])
		}
		if have.Tree != hash(texts[have.Name][have.Position]) {
			d.Errorf("backup %d of %s at position %d is not what was written", i, have.Name, have.Position)
		}
	}
}

// checkChain: where a write of the one client is missing, so are its later ones.
func (d *drill) checkChain(i int, b taken) {
	d.Helper()
	missing := link{}
	for _, l := range d.chain {
		there := l.position <= b.position(l.name)
		if !there && missing.name == "" {
			missing = l
		}
		if there && missing.name != "" {
			d.Errorf("backup %d has the write %v, but not the earlier %v", i, l, missing)
			return
		}
	}
}

func (d *drill) checkRestored(i int, b taken, texts map[string]map[uint64]string) {
	d.Helper()
	target := filepath.Join(d.TempDir(), "restored")
	if r, err := backup.Restore(context.Background(), b.dir, target, backup.RestoreOptions{}); err != nil {
		d.Errorf("restore backup %d: %v, %v", i, r, err)
		return
	}
	restored := openStand(d, target, store.Options{})
	defer restored.close()
	for _, name := range drillNames {
		if got, want := restored.export(name), texts[name][b.position(name)]; got != want {
			d.Errorf("backup %d: %s is restored as %.100s, want %.100s", i, name, got, want)
		}
	}
}
