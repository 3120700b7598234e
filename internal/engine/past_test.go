package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file adds readers to the histories of the model test, which make the same reads again and again
// beside the writer, in new views and in old ones. So most of their answers are remembered ones: rows, texts, lists
// of keys that are gone on with, ETags.

// A past is what the tree of a model was at the newest commits of one database. A nil one notes nothing.
type past struct {
	mu    sync.Mutex
	more  sync.Cond
	known uint64 // the position up to which all is noted
	trees []pastTree
	tags  map[string]string // the ETag of each text
	texts map[string]string // the text of each ETag
}

type pastTree struct {
	position uint64
	tree     *model.Tree
}

func newPast() *past {
	p := &past{tags: map[string]string{}, texts: map[string]string{}, trees: []pastTree{{0, model.New()}}}
	p.more.L = &p.mu
	return p
}

// note notes what a commit has left.
func (p *past) note(position uint64, t *model.Tree) {
	if p == nil || position == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trees = append(p.trees, pastTree{position, t.Clone()})
	if len(p.trees) > 64 {
		p.trees = append(p.trees[:0:0], p.trees[32:]...)
	}
}

// noted says that all is noted up to a position.
func (p *past) noted(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = max(p.known, position)
	p.more.Broadcast()
}

// at returns what the tree was at a position, nil if that is forgotten.
func (p *past) at(position uint64) (found *model.Tree) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.known < position {
		p.more.Wait()
	}
	for _, t := range p.trees {
		if t.position <= position {
			found = t.tree
		}
	}
	return found
}

// checkTag reports whether a tag is that of one text, and the only one of that.
func (p *past) checkTag(text, tag string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was, known := p.tags[text]; known && was != tag {
		return fmt.Errorf("the ETag of %.200s was %s, and is %s", text, was, tag)
	}
	if was, known := p.texts[tag]; known && was != text {
		return fmt.Errorf("the ETag %s was that of %.200s, and is that of %.200s", tag, was, text)
	}
	p.tags[text], p.texts[tag] = tag, text
	return nil
}

// A habit is a read that is made again and again.
type habit struct {
	at    tree.Path
	kind  habitKind
	query query.Query
}

type habitKind int

const (
	plainHabit habitKind = iota
	exportHabit
	shallowHabit
	tagHabit
	queryHabit // and all above it

	habitKinds = queryHabit + 4
)

func (h *history) habits(d twin) *[]habit {
	var list []habit
	for range 6 {
		p := h.target(d)
		if h.rng.IntN(2) == 0 {
			p = p.Parent()
		}
		list = append(list, habit{at: p, kind: habitKind(h.rng.IntN(int(habitKinds))), query: h.randomQuery()})
	}
	return &list
}

var errNoIndex = errors.New("the query has no index")

// check compares what is read in a view with a tree of the model.
func (b habit) check(v *state.View, p *past, t *model.Tree) error {
	keys := pathKeys(b.at)
	var want string
	var text store.Text
	var err error
	switch b.kind {
	case plainHabit:
		want = t.Plain(keys)
		text, err = v.Printer(b.at, tree.Plain)
	case exportHabit:
		want = t.Export(keys)
		text, err = v.Printer(b.at, tree.Export)
	case shallowHabit:
		want = t.Shallow(keys)
		text, err = v.Shallow(b.at)
	case tagHabit:
		tag, err := v.ETag(b.at)
		return errors.Join(err, p.checkTag(t.Export(keys), tag))
	default:
		want = selected(t, b.at, b.query)
		text, err = v.Select(b.at, b.query, tree.Export)
	}
	if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.Unavailable {
		return errNoIndex
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = errors.Join(text.PrintTo(&out), text.Close())
	if got := b.inOrder(out.Bytes()); err == nil && got != want {
		err = fmt.Errorf("\n got %s\nwant %s", got, want)
	}
	return err
}

// inOrder returns the text of an answer, that of a query with its children in key order.
func (b habit) inOrder(text []byte) string {
	if b.kind < queryHabit {
		return string(text)
	}
	n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
	if err != nil || n.IsNull() {
		return string(text)
	}
	return string(tree.AppendJSON(nil, n, tree.Export))
}

// A reader makes reads that are habits, until it is done.
type reader struct {
	twin
	rng    *rand.Rand
	habits *atomic.Pointer[[]habit]
	held   []*state.View
	reads  *atomic.Int64
}

func (r *reader) run(done *atomic.Bool) (err error) {
	for err == nil && !done.Load() {
		if r.held = append(r.held, r.db.View()); len(r.held) > 3 {
			r.held[0].Close()
			r.held = r.held[1:]
		}
		for range 4 {
			if err = r.read(); err != nil {
				break
			}
		}
	}
	for _, v := range r.held {
		v.Close()
	}
	return err
}

// read makes a read in one of the views, most often in a new one.
func (r *reader) read() error {
	v := r.held[max(r.rng.IntN(len(r.held)), r.rng.IntN(len(r.held)))]
	list := *r.habits.Load()
	b := list[r.rng.IntN(len(list))]
	t := r.past.at(v.Position)
	if t == nil {
		return nil
	}
	err := b.check(v, r.past, t)
	if errors.Is(err, errNoIndex) {
		return nil
	}
	r.reads.Add(1)
	if err != nil {
		err = fmt.Errorf("read %d of %s at position %d, by query %+v if it is %d: %w", b.kind, b.at, v.Position, b.query, queryHabit, err)
	}
	return err
}

// TestReadersModel: whatever is remembered, a view shows what the tree was at its commit.
func TestReadersModel(t *testing.T) {
	t.Parallel()
	rounds := max(1, int(*modelTime/(3*time.Second)))
	for name, open := range map[string]enginetest.OpenFunc{"default": enginetest.OpenDatabase, "tiny": enginetest.OpenTiny, "groups": enginetest.OpenGroups} {
		t.Run(name, func(t *testing.T) {
			for range rounds {
				seed := *modelSeed
				if seed == 0 {
					seed = rand.Uint64()
				}
				readBeside(t, newHistory(t, seed, open))
			}
		})
	}
}

// readBeside has readers beside a history.
func readBeside(t *testing.T, h *history) {
	var done atomic.Bool
	var readers sync.WaitGroup
	var reads atomic.Int64
	habits := make([]atomic.Pointer[[]habit], len(h.dbs))
	for i := range h.dbs {
		h.dbs[i].past = newPast()
		habits[i].Store(h.habits(h.dbs[i]))
		r := &reader{twin: h.dbs[i], rng: rand.New(rand.NewPCG(h.seed, uint64(2+i))), habits: &habits[i], reads: &reads}
		readers.Go(func() {
			if err := r.run(&done); err != nil {
				t.Errorf("-model.seed=%d: %v", h.seed, err)
			}
		})
	}
	end := sync.OnceFunc(func() {
		done.Store(true)
		for _, d := range h.dbs {
			d.past.noted(math.MaxUint64)
		}
		readers.Wait()
	})
	defer end() // a write may end the test
	for steps := historySteps(h.seed) / 8; h.steps < steps && !t.Failed(); h.steps++ {
		i := h.rng.IntN(len(h.dbs))
		h.writeBeside(h.dbs[i], &habits[i])
	}
	end()
	stats := h.store.Stats()
	figures.Report(t, "modelreaders", proof.Count("steps", h.steps), proof.Count("reads", int(reads.Load())), proof.Count("remembered", int(stats.MemoHits)))
	h.close()
}

// writeBeside makes a write where reads are made, as often as not, and now and then other indexes or other habits.
func (h *history) writeBeside(d twin, habits *atomic.Pointer[[]habit]) {
	if h.rng.IntN(60) == 0 {
		h.reindex(d)
	}
	if h.rng.IntN(50) == 0 && len(d.tree.Plain(nil)) > maxModel {
		h.write(d, tree.Path{})
	}
	p := h.target(d)
	if list := *habits.Load(); h.rng.IntN(2) == 0 {
		if p = list[h.rng.IntN(len(list))].at; h.rng.IntN(2) == 0 {
			p = p.Child(h.key())
		}
	}
	h.write(d, p)
	v := d.db.View()
	d.past.noted(v.Position)
	v.Close()
	if h.rng.IntN(25) == 0 {
		habits.Store(h.habits(d))
	}
}
