package engine

import (
	"bytes"
	"context"
	"errors"
	"runtime"

	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// SetIndexes is SetRules for indexes alone, without a document around them.
func (d *Database) SetIndexes(ctx context.Context, rules []state.IndexRule) error {
	return d.reviseBy(ctx, func(s *state.Settings) (revision, error) {
		return revision{rows: store.Settings{state.SettingIndexes: s.List.With(rules).Encode()}}, nil
	})
}

// HoldIndexes has no index built from now on, until the function is called that it
// returns. It waits for the end of work that is done, or rests.
func (d *Database) HoldIndexes() (release func()) {
	for isHeld := false; !isHeld; {
		d.writer.mu.Lock()
		isHeld = !d.writer.maintaining
		d.writer.maintaining = true
		d.writer.mu.Unlock()
		if !isHeld {
			time.Sleep(time.Millisecond) //nolint:forbidigo // what rests cannot be waited for
		}
	}
	return func() {
		d.writer.mu.Lock()
		d.writer.maintaining = false
		d.writer.mu.Unlock()
		d.indexer.start()
	}
}

// StepStands reports whether what is prepared for a write before a step of the first
// index still stands behind it.
func (d *Database) StepStands() bool {
	s := d.published.Load().Settings
	list := state.IndexList{Next: s.List.Next, Entries: slices.Clone(s.List.Entries)}
	list.Entries[0].Cursor = []byte("further")
	after, err := s.With(store.Settings{state.SettingIndexes: list.Encode()})
	return err == nil && after.PreparesLike(s)
}

// WriteLate is Write of a request whose nodes of more than minBytes are prepared, and
// whose turn comes when meanwhile has returned. If what was prepared does not stand
// then, it is written as any other.
func (d *Database) WriteLate(ctx context.Context, req Request, minBytes int, meanwhile func()) (Commit, error) {
	task := d.writer.newTask(req)
	defer task.free()
	if trace, err := d.writer.prepareAbove(task, minBytes); err != nil {
		return Commit{Trace: trace}, state.Classify(err)
	}
	meanwhile()
	if err := d.writer.perform(ctx, task); err != nil {
		return Commit{}, err
	}
	if errors.Is(task.err, errStale) {
		return d.Write(ctx, req)
	}
	return task.commit, state.Classify(task.err)
}

// SetClock puts another clock in the place of the database's own. Nothing may be
// going on.
func (d *Database) SetClock(clock *state.Clock) { d.source.Clock = clock }

// FinishWhileRulesCome publishes settings that ask for an index at the moment in which
// the goroutine that works on indexes has found nothing to do and is about to end. It
// returns when that goroutine has ended, and reports whether the index was built. The
// settings must be committed and their index held.
func (d *Database) FinishWhileRulesCome() (built bool) {
	asking := d.published.Load()
	before := *asking
	before.Settings = &state.Settings{}
	d.writer.mu.Lock()
	d.published.Store(&before)
	ended := make(chan struct{})
	d.writer.goroutines.Go(func() {
		defer close(ended)
		d.indexer.maintain()
	})
	for !waitsForLock("engine.(*indexer).maintain(") {
		runtime.Gosched()
	}
	d.published.Store(asking)
	d.writer.mu.Unlock()
	<-ended
	_, unfinished := d.published.Load().Settings.List.Unfinished()
	return !unfinished
}

// waitsForLock reports whether a goroutine that runs a function waits for a lock.
func waitsForLock(function string) bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "[sync.Mutex.Lock") && strings.Contains(stack, function) {
			return true
		}
	}
	return false
}

// Rests reports whether there is no writer.
func (d *Database) Rests() bool {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return !d.writer.running
}

// Remembers reports whether anything is known of recent commits.
func (d *Database) Remembers() bool {
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	return d.writer.memory != nil
}

// Recent returns how many changes are remembered, and the size of their paths.
func (d *Database) Recent() (changes, bytes int) {
	_ = d.reviseBy(context.Background(), func(*state.Settings) (revision, error) { // in the writer
		r := &d.writer.memory.recent
		changes = len(r.touched)
		for _, t := range r.touched {
			for _, p := range t.paths() {
				bytes += p.Bytes()
			}
		}
		return revision{}, nil
	})
	return changes, bytes
}

// TurnSteps is how many steps rules may take at a write's turn.
const TurnSteps = turnSteps

// Marked reports whether a request is prepared at once, because one like it was heavy.
func (d *Database) Marked(req Request) bool { return d.writer.marks.Load().has(&req) }

// JudgeAtTurn judges a request at a turn of its own, at which nothing is written. It
// returns how many steps the rules took, and whether that was too much.
func (d *Database) JudgeAtTurn(req Request) (steps int, heavy bool) {
	errJudged := errors.New("judged")
	err := d.reviseBy(context.Background(), func(s *state.Settings) (revision, error) {
		j, err := d.writer.judge(d.source.Store.Live(d.source.ID), s, req, state.Effort{Steps: turnSteps, Bytes: d.source.HeavyBytes})
		steps, heavy = j.steps, errors.Is(err, state.ErrHeavy)
		return revision{}, errJudged
	})
	if !errors.Is(err, errJudged) {
		panic(err)
	}
	return steps, heavy
}

// Turn takes the turn of a request as a write would, but commits nothing, and returns how
// long it took to decide and to build the batch. If it is not prepared before, it is as late
// as can be, so that the rules have the most steps.
func (d *Database) Turn(req Request, prepared bool) (decided, built time.Duration, err error) {
	task := d.writer.newTask(req)
	defer task.free()
	if task.late = !prepared; prepared {
		d.writer.needRecent(task)
		if _, err := d.writer.prepare(task); err != nil {
			return 0, 0, err
		}
	}
	errDone := errors.New("done")
	done := d.reviseBy(context.Background(), func(*state.Settings) (revision, error) {
		began := time.Now()
		task.commit, err = d.writer.decide(task)
		decided = time.Since(began)
		if err == nil {
			var batch *store.Batch
			if batch, err = d.writer.build(task); err == nil {
				built = time.Since(began) - decided
				batch.Close()
			}
		}
		return revision{}, errDone
	})
	if !errors.Is(done, errDone) {
		return 0, 0, done
	}
	return decided, built, err
}

// StaleDue returns how many rows of what expires are not those of the data, or by a rule that is gone.
func StaleDue(d *Database) (n int, err error) {
	view, published := d.view()
	defer view.Release()
	reader := view.Tree(d.source.ID).Reader()
	from, to := layout.DueRange(d.source.ID)
	err = reader.EachDueRow(from, to, func(key []byte) bool {
		row, bad := layout.CutDueKey(key)
		if bad == nil {
			var should []byte
			if _, should, bad = dueAgain(reader, published.Settings.Indexes, row); bad == nil && bytes.Equal(should, key) {
				return true
			}
		}
		n++
		return true
	})
	return n, err
}

// MarkAll marks all who write as those whose writes are too heavy for their turn.
func MarkAll(d *Database) {
	d.writer.marks.Store(&marks{})
	for i := range d.writer.marks.Load() {
		d.writer.marks.Load()[i].Store(markedWrites)
	}
}

// reviseBy changes settings by a function.
func (d *Database) reviseBy(ctx context.Context, change reviseFunc) error {
	_, err := d.revise(ctx, change)
	return err
}

// A reviseFunc is a change of settings that is no data.
type reviseFunc func(*state.Settings) (revision, error)

func (c reviseFunc) revise(_ *writer, s *state.Settings) (revision, error) { return c(s) }

// RestsOn reports whether a write at a path ends what was prepared under a condition.
func RestsOn(c Condition, at tree.Path) bool {
	var p prepared
	p.restOn((&Request{Also: []Condition{c}}).rests()...)
	return p.reads.Concerns(at)
}
