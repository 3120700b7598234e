package query

import (
	"strconv"

	"github.com/livetree/livetree/internal/tree"
)

// Parameters returns the query as the parameters of a request: what Parse reads as the
// same query. Nobody can ask for a bound that is an object; it is left out.
func (q Query) Parameters() map[string]string {
	list := map[string]string{orderBy: string(tree.AppendString(nil, q.Order.String()))}
	switch {
	case q.Limit > 0 && q.Last:
		list[limitToLast] = strconv.Itoa(q.Limit)
	case q.Limit > 0:
		list[limitToFirst] = strconv.Itoa(q.Limit)
	}
	q.Lower.parameter(list, startAt, startAfter)
	q.Upper.parameter(list, endAt, endBefore)
	return list
}

// parameter adds the bound to a list, by one of its names.
func (b Bound) parameter(list map[string]string, inclusive, exclusive string) {
	if !b.Set || b.Object {
		return
	}
	text := tree.AppendLeaf(nil, b.Value)
	if b.Key != "" {
		text = tree.AppendString(append(text, ','), b.Key)
	}
	if b.Exclusive {
		inclusive = exclusive
	}
	list[inclusive] = string(text)
}
