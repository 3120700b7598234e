package scan

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/query"
)

// A Known is where the children stand that a query selects, as far as they were kept. It
// never changes.
type Known struct {
	list []query.Position // in the direction in which the limit counts
	// horizon, if not nil, is up to where all children are in the list. There may be more
	// beyond it.
	horizon *query.Position
	bytes   int
	bounds  Bounds
	many    bool // there are too many to be kept, and the list is empty
	cost    int
}

// Cost returns what the pass cost by which the first of this was found: about how many
// children the node had.
func (k *Known) Cost() int { return k.cost }

// Many reports whether a query without a limit selects too many children to be kept.
// Nothing is known of them.
func (k *Known) Many() bool { return k.many }

// Len returns how many children are known.
func (k *Known) Len() int { return len(k.list) }

// Bytes returns about how much memory it takes.
func (k *Known) Bytes() int { return k.bytes }

// Short reports whether children beyond those that are known may be selected.
func (k *Known) Short(q query.Query) bool { return k.horizon != nil && len(k.list) < q.Limit }

// Shown returns where the selected children stand, in the direction in which the limit
// counts. It must not be changed.
func (k *Known) Shown(q query.Query) []query.Position {
	if q.Limit == 0 || q.Limit > len(k.list) {
		return k.list
	}
	return k.list[:q.Limit]
}

// Moved returns what is known after some children were touched and no others. Stand
// returns where a child stands then, nil if there is none. If none of them matters, k
// itself is returned. The result may be Short.
func (k *Known) Moved(q query.Query, touched []string, stand func(key string) (*query.Position, error)) (*Known, error) {
	if k.many {
		return k, nil
	}
	g := &gatherer{query: q, Bounds: k.bounds, horizon: k.horizon}
	came, err := g.gather(touched, stand)
	if err != nil {
		return nil, err
	}
	if !came && !k.has(touched) {
		return k, nil
	}
	next, err := k.merge(g, touched).known()
	if err == nil {
		next.cost = k.cost
	}
	return next, err
}

// merge returns what was gathered together with what is known of children that were not
// touched, up to where all that came was kept. All of it is in order, so that to sort it
// takes no time.
func (k *Known) merge(came *gatherer, touched []string) *gatherer {
	came.sort()
	all := &gatherer{query: came.query, Bounds: k.bounds, horizon: came.horizon, many: came.many}
	all.found = make([]query.Position, 0, len(k.list)+len(came.found))
	gone, next := contains(touched), came.found
	for _, p := range k.list {
		if gone(p.Key) || came.horizon != nil && compare(came.query, p, *came.horizon) > 0 {
			continue
		}
		for len(next) > 0 && compare(all.query, next[0], p) < 0 {
			all.found, next = append(all.found, next[0]), next[1:]
		}
		all.found = append(all.found, p)
	}
	all.found = append(all.found, next...)
	for _, p := range all.found {
		all.bytes += bytesOf(p)
	}
	all.many = all.many || all.open() && all.exceeds()
	return all
}

// gather adds where touched children stand now. It reports whether there are any among
// those that are known.
func (g *gatherer) gather(touched []string, stand func(key string) (*query.Position, error)) (came bool, err error) {
	for _, key := range touched {
		p, err := stand(key)
		if err != nil {
			return false, err
		}
		if p == nil {
			continue
		}
		if err := g.add(*p); err != nil && !errors.Is(err, errEnough) {
			return false, err
		}
	}
	return len(g.found) > 0 || g.many, nil
}

// has reports whether one of some keys is in the list.
func (k *Known) has(keys []string) bool {
	among := contains(keys)
	return slices.ContainsFunc(k.list, func(p query.Position) bool { return among(p.Key) })
}

// contains returns a function that reports whether a key is one of some.
func contains(keys []string) func(string) bool {
	const few = 8
	if len(keys) <= few {
		return func(key string) bool { return slices.Contains(keys, key) }
	}
	set := make(map[string]struct{}, len(keys))
	for _, key := range keys {
		set[key] = struct{}{}
	}
	return func(key string) bool { _, ok := set[key]; return ok }
}
