package store

import (
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A filling commits to an empty database, one write after the other: what a rescue
// writes to. All commits have the same time.
type filling struct {
	store    *Store
	id       layout.ID
	millis   int64
	position uint64
	last     sight // of the newest commit
}

// A sight is a ticket whose channel is closed when views show the commit.
type sight chan struct{}

func (sight) Durable(uint64) {}
func (s sight) Visible()     { close(s) }

// Settings commits settings.
func (f *filling) Settings(settings layout.Settings) error {
	if err := f.store.AdmitSettings(); err != nil {
		return err
	}
	b, err := f.store.BuildSettings(f.store.Live(f.id), f.next(tree.Write{}), settings, nil)
	if err != nil {
		return err
	}
	return f.commit(b)
}

// Write commits a write.
func (f *filling) Write(w tree.Write) error {
	if err := f.store.Admit(w); err != nil {
		return err // on a full disk Pebble would wait for ever
	}
	b, err := f.store.Build(f.store.Live(f.id), f.next(w), nil, nil, nil)
	if err != nil {
		return err
	}
	return f.commit(b)
}

// Exists reports whether the commits so far left data at a path.
func (f *filling) Exists(p tree.Path) (bool, error) { return f.store.Live(f.id).Exists(p) }

func (f *filling) next(w tree.Write) tree.Change {
	f.position++
	return tree.Change{Write: w, Position: f.position, Millis: f.millis}
}

func (f *filling) commit(b *batch.Batch) error {
	f.last = make(sight)
	return f.store.Commit(b, f.last)
}

// wait returns when views show everything that was committed.
func (f *filling) wait() {
	if f.last != nil {
		<-f.last
	}
}
