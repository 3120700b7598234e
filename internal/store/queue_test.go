package store

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A queue is a collection from which the oldest child is deleted when another is
// pushed, with an index by the time of the push. Its live jobs are from oldest up to
// next, and memos are off.
type queue struct {
	*stand
	oldest, next int
	index        layout.Index
}

// liveJobs is how many jobs a queue keeps.
const liveJobs = 40

var byTime = query.ByChild(tree.Path{}.Child("at"))

func newQueue(t testing.TB, opts Options) *queue {
	t.Helper()
	q := &queue{stand: newStand(t, opts), index: layout.Index{Number: 1, Order: byTime}}
	q.memos.Init(0)
	q.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"queue": {Here: []layout.Index{q.index}}}}
	q.put("front", `"what comes before the queue"`)
	for range liveJobs {
		q.push()
	}
	return q
}

func (q *queue) job(i int) tree.Path {
	return tree.Path{}.Child("queue").Child(fmt.Sprintf("-O%09d", i))
}

// apply commits a write without waiting for it.
func (q *queue) apply(w tree.Write) {
	q.Helper()
	if err := q.Commit(q.build(w), forgotten{}); err != nil {
		q.Fatal(err)
	}
	q.position++
}

// wait returns when everything that was applied is visible.
func (q *queue) wait() {
	q.Helper()
	done := make(visible)
	if err := q.Barrier(done); err != nil {
		q.Fatal(err)
	}
	<-done
}

func (q *queue) push() {
	q.Helper()
	text := fmt.Sprintf(`{"at":%d,"task":"%s"}`, q.next, strings.Repeat("x", 100))
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		q.Fatal(err)
	}
	q.apply(tree.Put(q.job(q.next), n))
	q.next++
}

func (q *queue) deleteOldest() {
	q.Helper()
	q.deleteAt(q.oldest)
	q.oldest++
}

func (q *queue) deleteAt(i int) {
	q.Helper()
	q.apply(tree.Put(q.job(i), tree.Node{}))
}

func (q *queue) deleteNewest() {
	q.Helper()
	q.next--
	q.deleteAt(q.next)
}

// finish pushes jobs and deletes as many, the oldest first, some at a time.
func (q *queue) finish(jobs int) {
	q.Helper()
	const most = 500
	for jobs > 0 {
		w := tree.Write{Patch: true}
		for range min(most, jobs) {
			q.push()
			w.Assignments = append(w.Assignments, tree.Assignment{Path: q.job(q.oldest)})
			q.oldest++
		}
		jobs -= len(w.Assignments)
		q.apply(w)
	}
	q.wait()
}

// look finds the first child that a query selects, or only whether there is one.
func (q *queue) look(view *View, selected *query.Query) {
	q.Helper()
	t, p := view.Tree(q.id), tree.Path{}.Child("queue")
	if selected == nil {
		if found, err := t.Exists(p); err != nil || !found {
			q.Fatalf("Exists(%s) = %v, %v, want the queue", p, found, err)
		}
		return
	}
	s, err := t.Select(p, *selected, &q.index, tree.Plain)
	if err != nil {
		q.Fatal(err)
	}
	if err := s.PrintTo(io.Discard); err != nil {
		q.Fatal(err)
	}
	if err := s.Close(); err != nil {
		q.Fatal(err)
	}
}
