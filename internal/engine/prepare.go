package engine

import (
	"math"
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// prepared is the work that was done for a write before its turn. It stands as
// long as the settings prepare alike and nothing at, above or below the paths that
// were read has changed since the position it was done at.
type prepared struct {
	position uint64
	settings *settings
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
// on is durable. It returns the trace of the rules.
func (d *Database) prepare(op *operation) (trace string, err error) {
	op.prepared.close()
	op.prepared = nil
	view, published := d.view()
	defer view.Release()
	p := &prepared{position: published.position, settings: published.settings, reads: op.request.Increments()}
	if op.request.IfMatch != "" {
		p.reads = append(p.reads, op.request.At)
	}
	t := view.Tree(d.id)
	j, err := d.judge(t, published.settings, op.request, math.MaxInt)
	if err != nil {
		return j.Trace, err
	}
	p.commit, p.reads = j.Commit, append(p.reads, j.reads...)
	if p.rows, err = t.Prepare(p.commit.Write, published.settings.indexes, heavyBytes); err != nil {
		return j.Trace, err
	}
	op.prepared = p
	return j.Trace, nil
}

// recentChanges is how many changes are remembered, at least, to check what was
// prepared.
const recentChanges = 256

// recent remembers what the newest commits touched.
type recent struct {
	position uint64 // of the newest commit
	// touched are the paths of the newest commits, the newest last.
	touched []touch
}

// A touch is the paths of one commit: those of a patch if they are few, else
// that of the request.
type touch struct {
	at    tree.Path
	patch []tree.Path
}

// concerns reports whether the commit touched something at, above or below a path.
func (t touch) concerns(p tree.Path) bool {
	related := func(q tree.Path) bool { return q.Contains(p) || p.Contains(q) }
	if t.patch != nil {
		return slices.ContainsFunc(t.patch, related)
	}
	return related(t.at)
}

// paths returns the paths of the commit.
func (t touch) paths() []tree.Path {
	if t.patch != nil {
		return t.patch
	}
	return []tree.Path{t.at}
}

// maxTouched is how many paths of one change are remembered one by one.
const maxTouched = 16

func (r *recent) add(c tree.Change) {
	t := touch{at: c.At}
	if n := len(c.Assignments); c.Settings {
		t.patch = []tree.Path{} // none
	} else if c.Patch && n <= maxTouched {
		t.patch = make([]tree.Path, n)
		for i, a := range c.Assignments {
			t.patch[i] = a.Path
		}
	}
	if len(r.touched) == 2*recentChanges {
		r.touched = append(r.touched[:0], r.touched[recentChanges:]...)
	}
	r.position = c.Position
	r.touched = append(r.touched, t)
}

// since returns the paths that commits behind a position touched; false if that is
// no longer known.
func (r *recent) since(position uint64) (touched []tree.Path, known bool) {
	behind := r.position - position
	if behind > uint64(len(r.touched)) {
		return nil, false
	}
	for _, change := range r.touched[uint64(len(r.touched))-behind:] {
		touched = append(touched, change.paths()...)
	}
	return touched, true
}

// unchanged reports whether no commit behind a position touched any of the
// paths; false if that is no longer known.
func (r *recent) unchanged(since uint64, paths []tree.Path) bool {
	if len(paths) == 0 || since == r.position {
		return true
	}
	behind := r.position - since
	if behind > uint64(len(r.touched)) {
		return false
	}
	for _, change := range r.touched[uint64(len(r.touched))-behind:] {
		if slices.ContainsFunc(paths, change.concerns) {
			return false
		}
	}
	return true
}
