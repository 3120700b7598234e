package state

import (
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An Explanation is how a read runs.
type Explanation struct {
	store.Explanation
	// Index is the index that the order needs, as .indexOn spells it; empty for
	// none. State is its state: ready, building or missing.
	Index, State string
}

// indexMissing is the state of an index that the rules do not ask for.
const indexMissing = "missing"

// Explain runs a read, of the children that q selects if it is not nil, and
// tells how. A read that lacks its index is not run.
func (v *View) Explain(p tree.Path, q *query.Query) (Explanation, error) {
	var e Explanation
	if err := v.Exists(); err != nil {
		return e, err
	}
	var index *store.Index
	if q != nil {
		var err error
		index, err = v.Settings.IndexFor(*q, p)
		if needed, ok := q.Order.Index(); ok && q.Order != query.ByPriority() {
			e.Index, e.State = needed.String(), IndexReady
		}
		switch {
		case fault.KindOf(err) == fault.Invalid:
			e.State, e.How = indexMissing, "none"
			return e, nil
		case err != nil:
			return e, err
		case index == nil && e.Index != "":
			e.State = IndexBuilding
		}
	}
	var err error
	e.Explanation, err = v.Tree().Explain(p, q, index)
	return e, Classify(err)
}
