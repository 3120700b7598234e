package watch

import (
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file compares assignments with what was there before, place by place, where that was not
// read at the turn of their change: it was too large, or the change was too much. Whether that is
// so depends on nodes that the watchers of a place may not be allowed to read. They must not see
// it by being told that something is as it was, so here the bounds are for what the place shows.

// unreadParts reports whether some part of the effect was not compared at its turn.
func (e *Effect) unreadParts() bool {
	return slices.ContainsFunc(e.parts, func(p part) bool { return !p.Void && !p.Priority && !p.known })
}

// An unread finds out which parts of the effects of a delivery leave a place as it was.
type unread struct {
	at     tree.Path
	before store.Tree // the effects are on this
	limits *Limits
	text   []byte // used again
}

// unreadAt returns an unread for a place; nil if the tree before the delivery is not known, or
// does not belong to what the place was told so far.
func (d *dispatcher) unreadAt(at *place, del *delivery) *unread {
	if del.before == nil || at.since > del.from() {
		return nil
	}
	return &unread{at: at.path, before: del.before.Tree(d.set.source.ID), limits: d.set.limits}
}

// same returns for each part of an effect that concerns the place whether it leaves the place as
// it was; nil if that is known of all of them. The effects before it are those of the delivery.
func (u *unread) same(e *Effect, earlier []*Effect) map[*part]bool {
	if u == nil || !e.unreadParts() {
		return nil
	}
	var parts []*part
	known := true
	e.around(u.at, func(p *part) bool {
		if !p.Void && !p.Priority && !(p.merged && u.at.Contains(p.at)) {
			parts = append(parts, p)
			known = known && p.known
		}
		return true
	})
	if known {
		return nil
	}
	same := make(map[*part]bool, len(parts))
	left := u.limits.HeavyBytes
	for i, p := range parts {
		same[p] = i < u.limits.MaxObserved && u.leaves(p, earlier, &left)
	}
	return same
}

// leaves reports whether a part leaves what the place shows of it as it was. It reads little more
// than there is now, and at most left.
func (u *unread) leaves(p *part, earlier []*Effect, left *int) bool {
	shows := p.Path
	if shows.Contains(u.at) {
		shows = u.at
	}
	now := p.now().At(p.Path.Below(shows))
	if now.IsNull() && len(earlier) == 0 {
		exists, err := u.before.Exists(shows)
		return err == nil && !exists
	}
	text, ok := appendWithin(u.text[:0], now, tree.Export, *left)
	if u.text = text; !ok {
		return false
	}
	const slack = 64 // for numbers in another spelling, and null
	most := 2*len(text) + slack
	if len(earlier) > 0 {
		most = *left // it may have become smaller
	}
	before, err := u.before.Node(shows, min(most, *left))
	if err != nil {
		return false
	}
	*left -= before.Bytes()
	return tree.Equal(replayed(shows, before, earlier), now)
}

// replayed returns what was at a path, before some effects, after them.
func replayed(at tree.Path, node tree.Node, effects []*Effect) tree.Node {
	for _, e := range effects {
		var below []*part
		e.around(at, func(p *part) bool {
			switch {
			case p.Void:
			case at.Contains(p.Path):
				below = append(below, p)
			case !p.Priority: // it replaced what is above
				node = p.Node.At(p.Path.Below(at))
			}
			return true
		})
		if len(below) > 0 {
			node = edited(at, node, below)
		}
	}
	return node
}

// as returns the part as it is to a place that it is found to leave as it was, or not.
func (part *part) as(same bool) *part {
	found := *part
	found.same, found.known = same, false
	return &found
}
