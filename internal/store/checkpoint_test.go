package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/tree"
)

// A grouped is a ticket that remembers the group of its commit.
type grouped struct {
	group uint64
	visible
}

func (g *grouped) Durable(group uint64) { g.group = group }

// TestCheckpointEndsWithAGroup: of a group, all commits are in the copy or none,
// while several databases are written to. The copy is on disk when it is made.
func TestCheckpointEndsWithAGroup(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	s, err := Open("data", Options{FS: disk, BallastBytes: -1, ChunkBytes: 64, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	names := []string{"a", "b", "c", "d"}
	groups := make([][]*grouped, len(names)) // of the commits of each database
	for i, name := range names {
		db := useDatabase(t, s, name)
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				w := tree.Put(tree.Path{}.Child(fmt.Sprint(n%50)), tree.Node{})
				if n%2 == 0 {
					w = putWrite(t, fmt.Sprint(n%50), fmt.Sprintf(`{"n":%d}`, n))
				}
				g := &grouped{visible: make(visible)}
				if err := s.Commit(db.build(w), g); err != nil {
					t.Error(err)
					return
				}
				db.position++
				groups[i] = append(groups[i], g)
				if n%7 == 0 { // several are under way most of the time
					<-g.visible
				}
			}
		})
	}
	type copied struct {
		disk  *vfs.MemFS
		group uint64
	}
	var copies []copied
	for range 5 {
		c, err := s.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		kept := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
		copies = append(copies, copied{kept, c.Group})
		if err := c.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	writers.Wait()
	for _, list := range groups {
		for _, g := range list {
			<-g.visible
		}
	}
	for i, c := range copies {
		a, err := OpenArchive("data/"+datadir.CheckpointDir, Options{FS: c.disk})
		if err != nil {
			t.Fatalf("copy %d: %v", i, err)
		}
		if a.Group != c.group || a.Durable != c.group {
			t.Errorf("copy %d ends at group %d and says %d, want %d", i, a.Group, a.Durable, c.group)
		}
		for k, name := range names {
			id, _, err := s.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			position, err := a.Tree(id).Position()
			if err != nil {
				t.Error(err)
			}
			want := 0
			for want < len(groups[k]) && groups[k][want].group <= c.group {
				want++
			}
			if position != uint64(want) {
				t.Errorf("copy %d has position %d of %s, group %d ends at %d", i, position, name, c.group, want)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestArchiveIsNotWritten: an archive takes no writes, and its files stay.
func TestArchiveIsNotWritten(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	s := openStand(t, Options{FS: disk})
	s.put("a", `{"b":1}`)
	s.close()
	before := contents(t, disk, "data")
	a, err := OpenArchive("data", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.store.Create("other"); err == nil {
		t.Error("a database could be made in an archive")
	}
	b, err := a.store.Build(a.store.Live(s.id), tree.Change{Write: putWrite(t, "a", "2"), Position: 2}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.Commit(b, make(visible)); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit to an archive = %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	after := contents(t, disk, "data")
	if len(before) != len(after) {
		t.Errorf("there were the files %v and there are %v", before, after)
	}
	for name, content := range after {
		if content != before[name] {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestCheckpointOfAClosedStore(t *testing.T) {
	t.Parallel()
	s := openStand(t, Options{})
	s.close()
	if _, err := s.Checkpoint(); !errors.Is(err, ErrClosed) {
		t.Errorf("Checkpoint of a closed store = %v", err)
	}
}
