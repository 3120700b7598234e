package engine

import (
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// renewed returns the commit of a prepared task at its turn. Push keys and times
// follow the order of commits: if there was a commit since the task was
// prepared, the task gets the key and the time of its turn.
//
// The decision of the rules stands. They saw the earlier time both as now and in the
// new data. Only if a rule looked at the key are they asked again.
func (w *writer) renewed(task *task) (Commit, error) {
	p := task.prepared
	commit := p.commit
	if w.position == p.position || task.request.isLater() {
		return commit, nil
	}
	if task.request.Push {
		if err := w.redraw(p, &commit, task.request.At); err != nil {
			return Commit{}, err
		}
	}
	commit.Millis = w.db.source.Clock.Millis() // not before the key is made, see judge
	commit.Write = commit.Write.Redate(commit.Millis)
	if task.request.Push && p.keyed {
		// This takes as long as the first time, but few rules look at a push key, and
		// most of those deny every POST.
		decision, err := w.settings.AllowWrite(w.live(), task.request.Who, commit.Change, commit.Key,
			state.Effort{Steps: lateTurnSteps, Witness: w.db.source.WitnessWrite(task.request.Write, true)})
		commit.Trace = decision.Trace
		if err != nil {
			return Commit{Trace: commit.Trace}, err
		}
	}
	fits, err := p.rows.Renew(commit.Write, p.commit.Millis, commit.Millis)
	if err == nil && !fits {
		err = errStale
	}
	return commit, err
}

// redraw gives the commit of a push another key. The prepared work stands only if
// there is no data at either key. No client knows a key before it is drawn, but one
// that has seen the last key may guess the next.
func (w *writer) redraw(p *prepared, commit *Commit, at tree.Path) error {
	key, err := w.db.source.Clock.PushKey()
	if err != nil {
		return err
	}
	commit.Key = key
	commit.Write = tree.Put(at.Child(key), commit.Assignments[0].Node)
	occupied, err := w.live().Exists(commit.At)
	if err == nil && (occupied || p.occupied) {
		err = errStale
	}
	return err
}
