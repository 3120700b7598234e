package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A witness keeps a book about one database, outside of the machine. The book
// has every commit by its position, as a step of the obvious tree; what readers
// saw, and at which position; and the greatest position that anybody was told
// of. After a cut, the database must be at that position or behind it, and be
// exactly what the steps up to its position make: so every acknowledged write
// is there, every other one is there as a whole or not at all, and none is
// there without those before it.
type witness struct {
	name string
	with enginetest.OpenFunc
	id   store.ID
	db   *engine.Database

	mu sync.Mutex
	// open says that the book is being written. After a cut, what comes in is
	// from a machine that is no more: it explains, but promises nothing.
	open    bool
	created bool
	// base is the tree at position start, which the last cut left.
	base    *model.Tree
	start   uint64
	commits map[uint64]step
	// promised is the greatest position that anybody was told of.
	promised uint64
	sights   []sight
	refusals []refusal
	// asked and acknowledged count the changes of the rules.
	asked, acknowledged int

	// What the book said when the power was cut:

	cut struct {
		created      bool
		promised     uint64
		refusals     int
		acknowledged int
	}
}

// A step is one commit.
type step struct {
	at     tree.Path // where, with the key of a push
	millis int64
	apply  func(*model.Tree) error
}

// A sight is something that a reader saw.
type sight struct {
	position uint64
	at       tree.Path
	text     string
}

// A refusal is a write that was refused because its location did not look like
// this any more, as it did at a position.
type refusal sight

func (w *witness) noteCut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open {
		w.open = false
		w.cut.created, w.cut.promised, w.cut.refusals = w.created, w.promised, len(w.refusals)
		w.cut.acknowledged = w.acknowledged
	}
}

// told returns the greatest position that anybody was told of.
func (w *witness) told() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.promised
}

// begin makes the database if need be and begins to listen.
func (w *witness) begin(s *store.Store, clock *state.Clock) error {
	id, found, err := s.Find(w.name)
	if !found && err == nil {
		id, err = s.Create(w.name)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.created, w.id, w.open = true, id, true
	w.acknowledged = w.cut.acknowledged // what was answered after the cut is no promise, also if the next one comes before compareRules
	w.mu.Unlock()
	if w.db, err = w.with(s, id, engine.Options{Clock: clock, Deadline: enginetest.Unhurried}); err != nil {
		return err
	}
	if err = w.compareRules(); err != nil {
		w.db.Close()
	}
	return err
}

// compareRules holds the rules against the book, and the rows of the indexes that
// they ask for against the data.
func (w *witness) compareRules() error {
	revision := 0
	if text := w.db.Rules(); text != state.ClosedRules {
		if _, err := fmt.Sscanf(text, "// revision %d", &revision); err != nil {
			return fmt.Errorf("the rules are %q: %w", text, err)
		}
	}
	w.mu.Lock()
	acknowledged, asked := w.cut.acknowledged, w.asked
	w.acknowledged, w.cut.acknowledged = revision, revision
	w.mu.Unlock()
	if revision < acknowledged || revision > asked {
		return fmt.Errorf("the rules are at revision %d, but %d was acknowledged, and %d asked for", revision, acknowledged, asked)
	}
	s := w.db.View()
	defer s.Close()
	return checkIndexes(s)
}

// ruleDocuments ask for indexes at places where the clients write.
var ruleDocuments = []string{
	`{"rules": {".indexOn": ["7", "a"], "$x": {".indexOn": ["0", "c/7"], "$y": {".indexOn": ".value"}}}}`,
	`{"rules": {".indexOn": "a", "$x": {".indexOn": ["0", "b"]}, "7": {".indexOn": "007"}}}`,
	`{"rules": {".read": true}}`,
}

// revise changes the rules, and so the indexes.
func (w *witness) revise() error {
	w.mu.Lock()
	w.asked++
	revision := w.asked
	w.mu.Unlock()
	document := fmt.Sprintf("// revision %d\n%s\n", revision, ruleDocuments[revision%len(ruleDocuments)])
	if _, err := w.db.SetRules(context.Background(), document); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged = revision
	return nil
}

// noteCommit is told of an answer to a write that began when told returned
// since.
func (w *witness) noteCommit(c engine.Commit, since uint64, apply func(*model.Tree) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Position == 0 {
		return nil
	}
	if _, taken := w.commits[c.Position]; taken || c.Position <= since {
		return fmt.Errorf("a write is acknowledged at position %d, which is taken or not behind %d", c.Position, since)
	}
	w.commits[c.Position] = step{c.At, c.Millis, apply}
	w.promised = max(w.promised, c.Position)
	return nil
}

// noteSight is told what a reader saw who began when told returned since.
func (w *witness) noteSight(s sight, since uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.position < since {
		return fmt.Errorf("a reader is shown position %d, older than %d, which was acknowledged before", s.position, since)
	}
	w.promised = max(w.promised, s.position)
	w.sights = append(w.sights, s)
	return nil
}

func (w *witness) noteRefusal(r refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, r)
}

// compare holds the store that came out of a cut against the book, and starts a
// new page with what is there. It returns the time of the newest commit.
func (w *witness) compare(s *store.Store, done *tally) (newest int64, err error) {
	id, found, err := s.Find(w.name)
	if err != nil {
		return 0, err
	}
	if w.cut.created && !found {
		return 0, errors.New("the database is gone")
	}
	w.created = found
	view := s.View()
	defer view.Release()
	now := view.Tree(id)
	position, err := now.Position()
	if err != nil {
		return 0, err
	}
	if position < w.cut.promised {
		return 0, fmt.Errorf("it is at position %d, but somebody was told of %d before the cut", position, w.cut.promised)
	}
	there, err := w.replay(position)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(compareTree(now, there), checkData(now)); err != nil {
		return 0, fmt.Errorf("at position %d: %w", position, err)
	}
	newest, err = w.compareLog(now, position)
	w.turnPage(there, position, done)
	return newest, err
}

// replay makes every step of the book, holds against the tree what readers saw
// on the way, and returns the tree at a position.
func (w *witness) replay(position uint64) (*model.Tree, error) {
	if position < w.start {
		return nil, fmt.Errorf("it is at position %d, but was at %d after the cut before", position, w.start)
	}
	there, last := w.base, position
	for p := range w.commits {
		last = max(last, p)
	}
	sights := make(map[uint64][]sight)
	for _, s := range w.sights {
		last = max(last, s.position)
		sights[s.position] = append(sights[s.position], s)
	}
	reasons := w.refusals[:w.cut.refusals]
	now := w.base.Clone()
	for p := w.start; ; p++ {
		for _, s := range sights[p] {
			if got := now.Export(pathKeys(s.at)); got != s.text {
				return nil, fmt.Errorf("a reader at position %d saw %s as\n%.500s\nbut the commits make it\n%.500s", p, s.at, s.text, got)
			}
		}
		if p <= position {
			reasons = unexplained(reasons, p, now)
		}
		if p == position {
			there = now.Clone()
		}
		if p == last {
			break
		}
		next, ok := w.commits[p+1]
		if !ok {
			continue // a change of the settings: see compareLog
		}
		if err := next.apply(now); err != nil {
			return nil, fmt.Errorf("position %d: %w", p+1, err)
		}
	}
	if len(reasons) > 0 {
		r := reasons[0]
		return nil, fmt.Errorf("a write to %s was refused because it had changed since position %d, but it has not at %d", r.at, r.position, position)
	}
	return there, nil
}

// unexplained returns the refusals that the tree at a position does not explain.
func unexplained(refusals []refusal, position uint64, now *model.Tree) []refusal {
	var left []refusal
	for _, r := range refusals {
		if r.position >= position || now.Export(pathKeys(r.at)) == r.text {
			left = append(left, r)
		}
	}
	return left
}

func compareTree(now store.Tree, want *model.Tree) error {
	var got bytes.Buffer
	if err := now.Print(&got, tree.Path{}, tree.Export); err != nil {
		return err
	}
	if text := want.Export(nil); got.String() != text {
		return fmt.Errorf("the database shows\n%.2000s\nwant\n%.2000s", got.String(), text)
	}
	return nil
}

// compareLog holds the log against the book. It returns the latest time in it,
// of a commit or of a push key.
func (w *witness) compareLog(now store.Tree, position uint64) (newest int64, err error) {
	behind, problem := uint64(0), error(nil)
	err = now.Changes(0, func(c tree.Change) bool {
		behind = c.Position
		newest = max(newest, c.Millis)
		if key, _ := lastKey(c.At); !c.Patch {
			if millis, ok := model.KeyTime(key); ok {
				newest = max(newest, millis)
			}
		}
		s, known := w.commits[c.Position]
		switch {
		case known && (s.millis != c.Millis || s.at != c.At):
			problem = fmt.Errorf("the log has position %d at %s and %d, but the writer was told %s and %d", c.Position, c.At, c.Millis, s.at, s.millis)
		case !known && c.Position > w.start && !c.Settings:
			problem = fmt.Errorf("nobody wrote what the log has at position %d", c.Position)
		}
		return true
	})
	if err == nil && behind != position {
		err = fmt.Errorf("the log ends at position %d, the database is at %d", behind, position)
	}
	return newest, errors.Join(err, problem)
}

func lastKey(p tree.Path) (key string, ok bool) {
	for key = range p.Keys() {
		ok = true
	}
	return key, ok
}

func (w *witness) turnPage(there *model.Tree, position uint64, done *tally) {
	done.commits += len(w.commits)
	for p := range w.commits {
		if p > position {
			done.lost++
		}
	}
	done.reads += len(w.sights)
	done.refused += len(w.refusals)
	w.base, w.start = there, position
	w.commits, w.sights, w.refusals = make(map[uint64]step), nil, nil
	w.promised = position
	w.cut.promised, w.cut.refusals = position, 0
}
