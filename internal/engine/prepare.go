package engine

import (
	"math"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// prepared is the work that was done for a write before its turn. It stands as
// long as nothing at, above or below the paths that were read has changed since
// the position it was done at.
type prepared struct {
	position uint64
	reads    []tree.Path
	commit   Commit
	rows     *store.Prepared
}

func (p *prepared) close() {
	if p != nil {
		p.rows.Close()
	}
}

// prepare judges an operation on the newest view and encodes the rows of its
// large nodes, however long that takes. A refusal is final: what it was judged
// on is durable.
func (d *Database) prepare(op *operation) error {
	op.prepared.close()
	op.prepared = nil
	view, published := d.view()
	defer view.Release()
	p := &prepared{position: published.position, reads: op.request.Increments()}
	if op.request.IfMatch != "" {
		p.reads = append(p.reads, op.request.At)
	}
	var err error
	if p.commit, err = d.judge(view.Tree(d.id), published.settings, op.request, math.MaxInt); err != nil {
		return err
	}
	if p.rows, err = d.store.Prepare(d.id, p.commit.Write, heavyBytes); err != nil {
		return err
	}
	op.prepared = p
	return nil
}

// recentChanges is how many changes are remembered to check what was prepared.
const recentChanges = 256

// recent remembers what the newest commits touched.
type recent struct {
	position uint64 // of the newest commit
	// touched are the paths of the newest commits, that of position p at
	// p modulo its length.
	touched [][]tree.Path
}

// maxTouched is how many paths of one change are remembered one by one.
const maxTouched = 16

func (r *recent) add(c tree.Change) {
	if r.touched == nil {
		r.touched = make([][]tree.Path, recentChanges)
	}
	paths := []tree.Path{c.At}
	if c.Patch && len(c.Assignments) <= maxTouched {
		paths = paths[:0]
		for _, a := range c.Assignments {
			paths = append(paths, a.Path)
		}
	}
	r.position = c.Position
	r.touched[c.Position%recentChanges] = paths
}

// unchanged reports whether no commit behind a position touched any of the
// paths; false if that is no longer known.
func (r *recent) unchanged(since uint64, paths []tree.Path) bool {
	if len(paths) == 0 || since == r.position {
		return true
	}
	if r.position-since > recentChanges {
		return false
	}
	for p := since + 1; p <= r.position; p++ {
		for _, touched := range r.touched[p%recentChanges] {
			for _, path := range paths {
				if touched.Contains(path) || path.Contains(touched) {
					return false
				}
			}
		}
	}
	return true
}
