package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A client writes or reads. It belongs to one goroutine.
type client struct {
	*witness
	store *store.Store
	plant plant
	rng   *rand.Rand
	// random makes bodies and paths.
	random *history
	last   uint64 // the position that was read last
}

func (m *machine) newClient(w *witness) *client {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 3))
	return &client{witness: w, store: m.store, plant: m.plant, rng: rng, random: &history{rng: rng}}
}

// write does one random write and tells the witness.
func (c *client) write() error {
	if c.rng.IntN(6) == 0 {
		return c.transact()
	}
	var req engine.Request
	var err error
	var apply func(t *model.Tree, c engine.Commit) error
	at := c.random.path(2)
	keys := pathKeys(at)
	switch n := c.rng.IntN(20); {
	case n < 6:
		body := c.body()
		req.Write, err = put(at, body)
		apply = func(t *model.Tree, c engine.Commit) error { return t.Put(keys, []byte(body), c.Millis) }
	case n < 8:
		req.Write = tree.Put(at, tree.Node{})
		apply = func(t *model.Tree, _ engine.Commit) error { t.Delete(keys); return nil }
	case n < 9:
		body := c.random.priority()
		var node tree.Node
		node, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		req.Write = tree.PutPriority(at, node)
		apply = func(t *model.Tree, c engine.Commit) error { return t.PutPriority(keys, []byte(body), c.Millis) }
	case n < 13:
		body := c.body()
		req.Write, err = put(at, body)
		req.Push = true
		apply = func(t *model.Tree, c engine.Commit) error {
			return t.Put(append(keys[:len(keys):len(keys)], c.Key), []byte(body), c.Millis)
		}
	default:
		body := c.random.patch(twin{tree: model.New()}, at)
		req.Write, err = tree.DecodePatch(strings.NewReader(body), at, tree.DecodeOptions{})
		apply = func(t *model.Tree, c engine.Commit) error { return t.Patch(keys, []byte(body), c.Millis) }
		if c.plant == tornPatch {
			if half, ok := tear(req.Write); ok {
				return c.perform(engine.Request{Write: half}, apply)
			}
		}
	}
	if err != nil {
		return nil // a body that makes no sense
	}
	return c.perform(req, apply)
}

// tear returns the first half of a patch.
func tear(w tree.Write) (tree.Write, bool) {
	half := len(w.Assignments) / 2
	w.Assignments = w.Assignments[:half]
	return w, half > 0
}

// body is mostly small; some are prepared before their turn.
func (c *client) body() string {
	if c.rng.IntN(60) == 0 {
		return `{"large":"` + strings.Repeat("x", 70<<10) + `"}`
	}
	return c.random.body(2)
}

// perform commits a request. apply says what it does to the obvious tree.
func (c *client) perform(req engine.Request, apply func(*model.Tree, engine.Commit) error) error {
	since := c.told()
	req.Who = admin
	commit, err := c.db.Write(context.Background(), req)
	if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.Unavailable {
		return nil // a large write that lost the race too often
	}
	if err != nil {
		return err
	}
	return c.noteCommit(commit, since, func(t *model.Tree) error { return apply(t, commit) })
}

// transact reads a location, and replaces it if it is still the same.
func (c *client) transact() error {
	at := c.random.path(1)
	since := c.told()
	s := c.db.View()
	seen, err := look(s, at)
	tag, tagErr := s.ETag(at)
	s.Close()
	if err = errors.Join(err, tagErr, c.noteSight(seen, since)); err != nil {
		return err
	}
	runtime.Gosched() // let others in between
	body := c.body()
	req := engine.Request{IfMatch: tag}
	if req.Write, err = put(at, body); err != nil {
		return nil
	}
	err = c.perform(req, func(t *model.Tree, commit engine.Commit) error {
		if got := t.Export(pathKeys(at)); got != seen.text {
			return fmt.Errorf("a write to %s was let in on\n%.500s\nbut had to be refused: it was\n%.500s", at, seen.text, got)
		}
		return t.Put(pathKeys(at), []byte(body), commit.Millis)
	})
	if fault.KindOf(err) == fault.Precondition {
		c.noteRefusal(refusal(seen))
		return nil
	}
	return err
}

// read reads a random location and tells the witness.
func (c *client) read() error {
	since := c.told()
	if c.plant == dirtyReads {
		position, err := c.store.Live(c.id).Position()
		runtime.Gosched() // or the writers would hardly get to run on one core
		return errors.Join(err, c.notePosition(position))
	}
	s := c.db.View()
	defer s.Close()
	if s.Position == c.last && c.rng.IntN(8) > 0 {
		runtime.Gosched()
		return nil
	}
	c.last = s.Position
	seen, err := look(s, c.random.path(2))
	if err != nil {
		return err
	}
	return errors.Join(c.noteSight(seen, since), followLog(s))
}

// notePosition is told that somebody knows of a position.
func (w *witness) notePosition(position uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promised = max(w.promised, position)
	return nil
}

func look(s *state.View, at tree.Path) (sight, error) {
	printer, err := s.Printer(at, tree.Export)
	if err != nil {
		return sight{}, err
	}
	var text bytes.Buffer
	err = errors.Join(printer.PrintTo(&text), printer.Close())
	return sight{s.Position, at, text.String()}, err
}

// followLog reads the newest changes: they must end with the snapshot's own.
func followLog(s *state.View) error {
	const newest = 5
	behind := s.Position - min(s.Position, newest)
	err := changes(s, behind, func(c tree.Change) bool {
		behind = c.Position
		return behind < math.MaxUint64
	})
	if err == nil && behind != s.Position {
		err = fmt.Errorf("a snapshot at position %d has a log up to %d", s.Position, behind)
	}
	return err
}
