package store

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/tree"
)

// A rescue of many rows is committed in portions of this size.
const (
	rescueRows  = 500
	rescueBytes = 1 << 20
)

// Rescued is what Rescue has copied of a database, and what it could not.
type Rescued struct {
	Rows int
	// Unreadable are the paths of rows that are in order on disk, but that make
	// no sense.
	Unreadable []string
	Settings   Settings // as they were
}

// Rescue writes what can be read of a database into a database of another store,
// which must be empty. It writes the tree anew, so that all that follows from it is
// right: what is lost is not there, and nothing else is. The change log begins anew.
// The settings are what change makes of those that can be read.
func (a *Archive) Rescue(l *Losses, id ID, into *Store, to ID, change func(Settings) (Settings, error)) (Rescued, error) {
	r := &rescue{into: into, id: to, millis: max(a.store.meta.millis, into.LastMillis()), result: Rescued{Settings: Settings{}}}
	prefix := settingKey(id, "")
	err := a.readable(l, prefix, appendSpace(nil, spaceSettings, id+1), func(key, row []byte) error {
		r.result.Settings[string(key[len(prefix):])] = bytes.Clone(row)
		return nil
	})
	if err != nil {
		return r.result, err
	}
	settings, err := change(r.result.Settings)
	if err != nil {
		return r.result, err
	}
	if err := r.settings(settings); err != nil {
		return r.result, err
	}
	// A split node has its priority before its children, but must be there to get
	// it: priorities come second.
	for _, pass := range []func(key, row []byte) error{r.data, r.priority} {
		if err := a.readable(l, dataPrefix(id), appendSpace(nil, spaceData, id+1), pass); err != nil {
			return r.result, err
		}
		if err := r.flush(); err != nil {
			return r.result, err
		}
	}
	if r.last != nil {
		<-r.last
	}
	return r.result, nil
}

// A rescue writes the rows of one database.
type rescue struct {
	into     *Store
	id       ID
	millis   int64 // the time of all commits: that of the newest that there was
	position uint64
	result   Rescued

	waiting []tree.Assignment
	bytes   int
	last    sight // of the newest commit
}

// A sight is a ticket whose channel is closed when views show the commit.
type sight chan struct{}

func (sight) Durable(uint64) {}
func (s sight) Visible()     { close(s) }

func (r *rescue) settings(settings Settings) error {
	if len(settings) == 0 {
		return nil
	}
	r.position++
	b, err := r.into.BuildSettings(r.id, tree.Change{Position: r.position, Millis: r.millis}, settings, nil)
	if err != nil {
		return err
	}
	r.last = make(sight)
	return r.into.Commit(b, r.last)
}

// splitKey takes the key of a data row apart.
func splitKey(key []byte) (p tree.Path, isPriority bool, err error) {
	rest := key[len(dataPrefix(0)):]
	if n := len(rest); n > 0 && rest[n-1] == priorityMark {
		if p, err := decodePath(rest[:n-1]); err == nil {
			return p, true, nil
		}
	}
	p, err = decodePath(rest)
	return p, false, err
}

// data takes a chunk.
func (r *rescue) data(key, row []byte) error {
	p, isPriority, err := splitKey(key)
	if isPriority {
		return nil
	}
	n, decodeErr := decodeRow(row)
	if errors.Join(err, decodeErr) != nil {
		r.result.Unreadable = append(r.result.Unreadable, pathOf(key).String())
		return nil
	}
	return r.add(tree.Assignment{Path: p, Node: n}, len(row))
}

// priority takes the priority of a split node, unless the node is lost.
func (r *rescue) priority(key, row []byte) error {
	p, isPriority, err := splitKey(key)
	if err != nil || !isPriority {
		return nil
	}
	leaf, err := decodePriorityRow(key, row)
	if err != nil {
		r.result.Unreadable = append(r.result.Unreadable, p.String())
		return nil
	}
	exists, err := r.into.Live(r.id).Exists(p)
	if err != nil || !exists {
		return err
	}
	r.result.Rows++
	return r.commit(tree.PutPriority(p, tree.LeafNode(leaf)))
}

func (r *rescue) add(a tree.Assignment, size int) error {
	r.result.Rows++
	if a.Path == (tree.Path{}) {
		return r.commit(tree.Put(a.Path, a.Node))
	}
	r.waiting = append(r.waiting, a)
	r.bytes += size
	if len(r.waiting) < rescueRows && r.bytes < rescueBytes {
		return nil
	}
	return r.flush()
}

func (r *rescue) flush() error {
	if len(r.waiting) == 0 {
		return nil
	}
	w := tree.Write{Patch: true, Assignments: r.waiting}
	r.waiting, r.bytes = nil, 0
	return r.commit(w)
}

func (r *rescue) commit(w tree.Write) error {
	if err := r.into.Admit(w); err != nil {
		return err // on a full disk Pebble would wait for ever
	}
	r.position++
	b, err := r.into.Build(r.id, tree.Change{Write: w, Position: r.position, Millis: r.millis}, nil, nil, nil)
	if err != nil {
		return err
	}
	r.last = make(sight)
	return r.into.Commit(b, r.last)
}
