package store

import (
	"io"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// sweepDeletes is after how many deletes the writer looks for gaps.
const sweepDeletes = 64

// deletedSteps is what a deleted row takes to pass in the memtable: its tombstone and
// the row itself.
const deletedSteps = 2

// TestGrowthQueue: what a queue costs does not grow with the jobs that were done. It
// counts the steps over rows, and over what is left of deleted ones: with 4 and 16
// times as many jobs done they may double at most; what a sweep leaves is not counted
// as growth. The memtable holds everything, as
// it does between two flushes: nothing is compacted away.
func TestGrowthQueue(t *testing.T) {
	few := 150
	if raceEnabled {
		few = 40
	}
	for _, c := range []struct {
		name string
		end  func(q *queue, jobs int) // brings about the deletes
		do   func(q *queue)
	}{
		{"delete the oldest", (*queue).finish, func(q *queue) { q.push(); q.deleteOldest() }},
		{"delete the oldest of a queue drained from both ends", drainBothEnds, func(q *queue) { q.push(); q.deleteOldest() }},
		{"delete the newest", (*queue).finish, func(q *queue) { q.push(); q.push(); q.deleteNewest() }},
		{"delete the newest of a queue drained from its end", (*queue).drain, (*queue).deleteNewest},
		{"delete from the middle", (*queue).finish, func(q *queue) { q.deleteAt((q.oldest + q.next) / 2); q.oldest++; q.push() }},
		{"set and delete one child", (*queue).toggle, func(q *queue) { q.push(); q.deleteNewest() }},
		{"GET", (*queue).finish, func(q *queue) { q.cycle(); q.read(q.print) }},
		{"shallow", (*queue).finish, func(q *queue) { q.cycle(); q.read(q.shallow) }},
		{"exists", (*queue).finish, func(q *queue) { q.cycle(); q.read(func(v *View) { q.look(v, nil) }) }},
		{"first by key", (*queue).finish, first(query.Query{Order: query.ByKey(), Limit: 1})},
		{"first by an index", (*queue).finish, first(query.Query{Order: byTime, Limit: 1})},
		{"first by priority", (*queue).finish, first(query.Query{Order: query.ByPriority(), Limit: 1})},
		{"last by key", (*queue).drain, last(query.Query{Order: query.ByKey(), Limit: 1, Last: true})},
		{"last by an index", (*queue).drain, last(query.Query{Order: byTime, Limit: 1, Last: true})},
		{"first by key, done one by one", (*queue).work, first(query.Query{Order: query.ByKey(), Limit: 1})},
	} {
		t.Run(c.name, func(t *testing.T) {
			least := 0
			for _, jobs := range []int{few, 4 * few, 16 * few} {
				q := newQueue(t, Options{MemTableBytes: 64 << 20})
				c.end(q, jobs)
				before := q.shared.Steps.Load()
				const times = 20
				for range times {
					c.do(q)
				}
				steps := int(q.shared.Steps.Load()-before) / times
				if least == 0 {
					least = steps
				}
				if steps > 2*max(least, deletedSteps*sweepDeletes) {
					t.Errorf("with %d jobs done it takes %d steps, with %d it took %d; want at most twice that", jobs, steps, few, least)
				}
			}
		})
	}
}

// TestGrowthFirstLook: also the first of all looks, after deletes that nobody
// looked at, passes what a sweep left at most.
func TestGrowthFirstLook(t *testing.T) {
	jobs := 4000
	if raceEnabled {
		jobs = 1000
	}
	for name, selected := range map[string]*query.Query{
		"exists":            nil,
		"first by key":      {Order: query.ByKey(), Limit: 1},
		"first by an index": {Order: byTime, Limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, Options{MemTableBytes: 64 << 20})
			for range jobs {
				q.push()
				q.deleteOldest()
			}
			q.wait()
			before := q.shared.Steps.Load()
			q.read(func(v *View) { q.look(v, selected) })
			if steps, want := q.shared.Steps.Load()-before, uint64(2*deletedSteps*sweepDeletes); steps > want {
				t.Errorf("the first look took %d steps after %d jobs were done, want at most %d", steps, jobs, want)
			}
		})
	}
}

// first makes a job and finishes one, and looks at the oldest.
func first(selected query.Query) func(q *queue) {
	return func(q *queue) {
		q.cycle()
		q.read(func(v *View) { q.look(v, &selected) })
	}
}

// last does it at the other end.
func last(selected query.Query) func(q *queue) {
	return func(q *queue) {
		q.deleteNewest()
		q.wait()
		q.read(func(v *View) { q.look(v, &selected) })
	}
}

// cycle makes a job and finishes one.
func (q *queue) cycle() {
	q.Helper()
	q.push()
	q.deleteOldest()
	q.wait()
}

// work finishes jobs one by one, and looks at each as a worker does.
func (q *queue) work(jobs int) {
	q.Helper()
	for range jobs {
		q.push()
		q.deleteOldest()
		q.read(func(v *View) { q.look(v, &query.Query{Order: query.ByKey(), Limit: 1}) })
	}
}

// drain pushes jobs and deletes them, the newest first.
func (q *queue) drain(jobs int) {
	q.Helper()
	for range jobs {
		q.push()
	}
	for range jobs {
		q.deleteNewest()
	}
	q.wait()
}

func drainBothEnds(q *queue, jobs int) {
	q.Helper()
	q.finish(jobs / 2)
	q.drain(jobs / 2)
}

// toggle sets and deletes one child again and again.
func (q *queue) toggle(times int) {
	q.Helper()
	for range times {
		q.push()
		q.deleteNewest()
	}
}

// read calls a function with the newest view.
func (q *queue) read(f func(v *View)) {
	view := q.View()
	defer view.Release()
	f(view)
}

func (q *queue) print(v *View) {
	q.Helper()
	if err := v.Tree(q.id).Print(io.Discard, tree.Path{}.Child("queue"), tree.Plain); err != nil {
		q.Fatal(err)
	}
}

func (q *queue) shallow(v *View) {
	q.Helper()
	printer, err := v.Tree(q.id).Shallow(tree.Path{}.Child("queue"))
	if err != nil {
		q.Fatal(err)
	}
	if err := printer.PrintTo(io.Discard); err != nil {
		q.Fatal(err)
	}
	if err := printer.Close(); err != nil {
		q.Fatal(err)
	}
}
