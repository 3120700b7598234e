package engine

import (
	"slices"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// recentBytes is how much the paths of all changes that are remembered may take,
	// and maxTouchedBytes those of one change.
	recentBytes     = 64 << 10
	maxTouchedBytes = recentBytes / 16
)

// recent remembers what the newest commits touched. It copies the paths: they are parts of
// requests, which would be kept with all they hold, also with credentials.
type recent struct {
	position uint64 // of the newest commit
	// touched are the paths of the newest commits, the newest last.
	touched []touch
	bytes   int // of the paths
	copies  tree.Copies
}

// A touch is the paths of one commit: those of a patch if they are few, else
// that of the request.
type touch struct {
	at    tree.Path
	patch []tree.Path
	bytes int // of the paths
}

// paths returns the paths of the commit.
func (t touch) paths() []tree.Path {
	if t.patch != nil {
		return t.patch
	}
	return []tree.Path{t.at}
}

// add remembers a commit.
func (r *recent) add(c tree.Change, l *Limits) {
	t := r.touch(c, l.MaxTouched)
	r.position = c.Position
	r.touched = append(r.touched, t)
	r.bytes += t.bytes
	if len(r.touched) > 2*l.RecentChanges || r.bytes > recentBytes {
		r.shed()
	}
}

// touch copies the paths of a commit, if they are not more than a number.
func (r *recent) touch(c tree.Change, most int) touch {
	if c.Settings {
		return touch{patch: []tree.Path{}} // none
	}
	t := touch{bytes: c.At.Bytes()}
	if !c.Patch || len(c.Assignments) > most {
		t.at = r.copies.Of(c.At)
		return t
	}
	paths := 0
	for _, a := range c.Assignments {
		paths += a.Path.Bytes()
	}
	if paths > maxTouchedBytes {
		t.at = r.copies.Of(c.At)
		return t
	}
	t.bytes, t.patch = paths, make([]tree.Path, len(c.Assignments))
	for i, a := range c.Assignments {
		t.patch[i] = r.copies.Of(a.Path)
	}
	return t
}

// shed forgets the older half.
func (r *recent) shed() {
	kept := copy(r.touched, r.touched[(len(r.touched)+1)/2:])
	clear(r.touched[kept:]) // the array lives on
	r.touched, r.bytes = r.touched[:kept], 0
	for _, t := range r.touched {
		r.bytes += t.bytes
	}
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

// unchanged reports whether no commit after a position touched anything at, above or
// below the paths; false if that is no longer known. What it costs does not depend on
// how many paths there are.
func (r *recent) unchanged(since uint64, paths *hub.Register[struct{}]) bool {
	if since == r.position || !paths.Concerns(tree.Path{}) {
		return true
	}
	behind := r.position - since
	if behind > uint64(len(r.touched)) {
		return false
	}
	for _, change := range r.touched[uint64(len(r.touched))-behind:] {
		if slices.ContainsFunc(change.paths(), paths.Concerns) {
			return false
		}
	}
	return true
}

// needRecent says that a task needs to know, at its turn, what was touched since
// its work was done before it. Until it is free that is not forgotten.
func (w *writer) needRecent(task *task) {
	if task.needsRecent {
		return
	}
	task.needsRecent = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.preparing++
}

// forgetRecent undoes needRecent.
func (w *writer) forgetRecent(task *task) {
	if !task.needsRecent {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.preparing--
	w.rest()
}

// rest gives up the writer's memory if there is no writer and nothing is being prepared. The
// lock is held.
func (w *writer) rest() {
	if w.running || w.maintaining || w.preparing > 0 {
		return
	}
	w.memory = nil
}
