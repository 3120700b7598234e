package engine

import (
	"math"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// prepared is the work that was done for a write before its turn. It stands as
// long as the settings prepare alike and nothing at, above or below the paths that
// were read has changed since the position it was done at.
type prepared struct {
	position uint64
	settings *state.Settings
	reads    hub.Register[struct{}]
	commit   Commit
	rows     *store.Prepared
	// occupied says that there was data at the push key. Then the work does not stand
	// for another key.
	occupied bool
	// keyed says that the rules must be asked again about another push key.
	keyed bool
}

// restOn says that what is prepared stands only while nothing at, above or below the
// paths changes.
func (p *prepared) restOn(paths ...tree.Path) {
	for _, path := range paths {
		p.reads.Add(path, struct{}{})
	}
}

func (p *prepared) close() {
	if p != nil {
		p.rows.Close()
	}
}

// prepare judges a task on the newest view and encodes the rows of its
// large nodes, however long that takes. A refusal is final: what it was judged
// on is durable. It returns the trace of the rules.
func (w *writer) prepare(task *task) (trace string, err error) {
	return w.prepareAbove(task, w.limits.HeavyBytes)
}

// prepareAbove is prepare for nodes of more than minBytes.
func (w *writer) prepareAbove(task *task, minBytes int) (trace string, err error) {
	task.prepared.close()
	task.prepared = nil
	view, published := w.db.view()
	defer view.Release()
	if published.Dropped {
		return "", state.NoDatabase(w.db.source.Name)
	}
	p := &prepared{position: published.Position, settings: published.Settings}
	if !task.request.hasWrite() {
		task.prepared = p
		return "", task.request.parting.prepare()
	}
	p.restOn(task.request.Increments()...)
	p.restOn(task.request.rests()...)
	t := view.Tree(w.db.source.ID).Until(task.gone)
	j, err := w.judge(t, published.Settings, task.request, state.Effort{Bytes: math.MaxInt, Done: task.gone})
	if err != nil {
		return j.Trace, err
	}
	w.marks.Load().prepared(&task.request, j.steps > turnSteps)
	p.commit = j.Commit
	p.restOn(j.reads...)
	p.keyed = j.usedKey || task.request.Who.Debug // the trace names the key
	if task.request.Push {
		if p.occupied, err = t.Exists(p.commit.At); err != nil {
			return j.Trace, err
		}
	}
	if err := task.request.parting.prepare(); err != nil {
		return j.Trace, err
	}
	if task.request.isLater() {
		task.prepared = p // it needs no rows
		return j.Trace, nil
	}
	if p.rows, err = t.Prepare(p.commit.Write, published.Settings.Indexes, minBytes); err != nil {
		return j.Trace, err
	}
	task.prepared = p
	return j.Trace, nil
}
