// Package revert takes a part of a database back to what it was at another moment.
//
// It compares the two moments and writes back what is missing now: a key that was deleted since
// returns, with all that was below it. A key that has other data by now, or that is new, is
// told of and left alone, because somebody has written it since; only who asks to overwrite
// gets the part exactly as it was.
//
// All of it is one commit, like any other: indexes, streams and the change log see it. It is
// made only if none of the places that it writes has changed since they were compared; else
// they are compared again.
package revert

import (
	"context"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/compare"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// maxPlaces bounds the places that are written: as many as a PATCH may have.
	maxPlaces = 100_000
	// shownPlaces is how many places are told.
	shownPlaces = 20
	// tries is how often the moments are compared, if places change meanwhile.
	tries = 8
)

// Options say how a part is taken back.
type Options struct {
	// Overwrite makes it exactly as it was: what has changed is replaced, what is new is
	// deleted.
	Overwrite bool
	// MaxBytes bounds the text of what is written, Claim is for the memory that it takes; it
	// may be nil.
	MaxBytes int
	Claim    *budget.Claim
	// Who asks; rules do not apply.
	Who auth.Identity
}

// A Place is one where the moments differ.
type Place struct {
	Path string `json:"path"`
	// Was says how it differs from the moment: gone, new, changed or priority.
	Was string `json:"was"`
	// Done is what becomes of it: back, replaced, deleted or left.
	Done string `json:"done"`
}

// A Result is what a part that was taken back looks like, or would.
type Result struct {
	Path string `json:"path"`
	// Back, Replaced and Deleted count the places that are written, Left those that are not.
	Back     int `json:"back"`
	Replaced int `json:"replaced"`
	Deleted  int `json:"deleted"`
	Left     int `json:"left"`
	// Places are the first of them.
	Places []Place `json:"places"`
	// Position is that of the commit; 0 if there was none.
	Position uint64 `json:"position,omitempty"`
}

// Changes reports whether anything is to be written.
func (r Result) Changes() bool { return r.Back+r.Replaced+r.Deleted > 0 }

// Preview says what Do would write, and writes nothing.
func Preview(ctx context.Context, then store.Tree, d *engine.Database, p tree.Path, o Options) (Result, error) {
	plan, err := newPlan(ctx, then, d, p, o)
	return plan.Result, err
}

// Do takes a part of a database back to the moment that a tree shows. It fails with a
// fault.TooLarge error if that is too much for one commit, and with a fault.Unavailable one
// if the places change too often.
func Do(ctx context.Context, then store.Tree, d *engine.Database, p tree.Path, o Options) (Result, error) {
	for range tries {
		plan, err := newPlan(ctx, then, d, p, o)
		if err != nil || !plan.Changes() {
			return plan.Result, err
		}
		commit, err := d.Write(ctx, engine.Request{Write: plan.write, Also: plan.conditions, Who: o.Who})
		if fault.KindOf(err) != fault.Precondition {
			plan.Position = commit.Position
			return plan.Result, err
		}
	}
	return Result{}, fault.New(fault.Unavailable, "what is to be taken back at %s changes too often, try again", p)
}

// A plan is what is to be written, and what that rests on.
type plan struct {
	Result
	options    Options
	then       store.Tree
	now        *state.View
	write      tree.Write
	conditions []engine.Condition
	openAt     *tree.Path // the last place that must have no value at it or above
	bytes      int
}

func newPlan(ctx context.Context, then store.Tree, d *engine.Database, p tree.Path, o Options) (*plan, error) {
	now := d.View()
	defer now.Close()
	now.Until(ctx.Done())
	plan := &plan{Result: Result{Path: p.String(), Places: []Place{}}, options: o, then: then.Until(ctx.Done()), now: now}
	plan.write = tree.Write{At: p, Patch: true}
	if err := now.Exists(); err != nil {
		return plan, err
	}
	if blocked, err := plan.checkAbove(); blocked || err != nil {
		return plan, state.Classify(err)
	}
	if err := compare.Trees(plan.then, now.Tree(), p, plan.add); err != nil {
		return plan, state.Classify(err)
	}
	if list := plan.write.Assignments; len(list) == 1 && list[0].Path == p {
		plan.write.Patch = false
	}
	return plan, nil
}

// checkAbove looks for a value above the path, which somebody has written since and which
// would be replaced. It reports whether that is to be left alone.
func (p *plan) checkAbove() (blocked bool, err error) {
	for at := range p.write.At.Ancestors() {
		kind, err := p.now.Tree().Kind(at)
		if err != nil {
			return false, err
		}
		if kind == tree.Null {
			continue
		}
		above := compare.Difference{Path: at, Kind: compare.Changed}
		if !p.options.Overwrite {
			p.Left++
			p.show(above, "left")
			return true, nil
		}
		return false, p.restOn(above)
	}
	return false, nil
}

// add notes a difference, and what is to be written because of it.
func (p *plan) add(d compare.Difference) error {
	if d.Kind != compare.Gone && !p.options.Overwrite {
		p.Left++
		p.show(d, "left")
		return nil
	}
	if len(p.write.Assignments) == maxPlaces {
		return fault.New(fault.TooLarge, "more than %d places are to be written: take back a smaller part", maxPlaces)
	}
	a := tree.Assignment{Path: d.Path, Name: p.write.At.Below(d.Path).String()[1:]}
	switch d.Kind {
	case compare.New:
		p.Deleted++
		p.show(d, "deleted")
	case compare.Priority:
		priority, err := p.then.Priority(d.Path)
		if err != nil {
			return err
		}
		a.Priority, a.Node = true, tree.LeafNode(priority)
		p.Replaced++
		p.show(d, "replaced")
	default:
		n, err := p.node(d.Path)
		if err != nil {
			return err
		}
		a.Node = n
		if d.Kind == compare.Gone {
			p.Back++
			p.show(d, "back")
		} else {
			p.Replaced++
			p.show(d, "replaced")
		}
	}
	p.write.Assignments = append(p.write.Assignments, a)
	return p.restOn(d)
}

// node reads what was at a path, within the bytes that are left.
func (p *plan) node(at tree.Path) (tree.Node, error) {
	n, err := p.then.Node(at, p.options.MaxBytes-p.bytes)
	p.bytes += n.Bytes()
	if errors.Is(err, store.ErrTooLarge) || p.bytes > p.options.MaxBytes {
		return n, fault.New(fault.TooLarge, "more than %d bytes are to be written: take back a smaller part", p.options.MaxBytes)
	}
	if err != nil {
		return n, err
	}
	if p.options.Claim != nil && !p.options.Claim.Grow(int64(p.bytes)) {
		return n, fault.New(fault.Unavailable, "there is no memory for this now, try again")
	}
	return n, nil
}

// restOn notes that the place must not change before it is written. Where nothing is, nothing
// would be either if somebody put a value above it, which the write would replace.
func (p *plan) restOn(d compare.Difference) error {
	tag := state.NullETag
	if parent := d.Path.Parent(); d.Kind == compare.Gone && !p.options.Overwrite && !d.Path.IsRoot() && (p.openAt == nil || *p.openAt != parent) {
		p.openAt = &parent // places come by their parents, mostly
		p.conditions = append(p.conditions, engine.Condition{Path: parent})
	}
	if d.Kind != compare.Gone {
		var err error
		if tag, err = p.now.ETag(d.Path); err != nil {
			return err
		}
	}
	p.conditions = append(p.conditions, engine.Condition{Path: d.Path, ETag: tag})
	return nil
}

func (p *plan) show(d compare.Difference, done string) {
	if len(p.Places) < shownPlaces {
		p.Places = append(p.Places, Place{d.Path.String(), d.Kind.String(), done})
	}
}

// String says in one line what was written, or would be.
func (r Result) String() string {
	return fmt.Sprintf("%s: %d back, %d replaced, %d deleted, %d left as they are", r.Path, r.Back, r.Replaced, r.Deleted, r.Left)
}
