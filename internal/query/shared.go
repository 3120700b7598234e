package query

import "unique"

// A Shared is a query that is kept in several places: equal ones take the memory of one,
// and a pointer each. They are compared as the queries are. The zero Shared is no query.
type Shared struct{ handle unique.Handle[Query] }

// Share returns q as a Shared, which holds none of the memory of q, and about how many
// bytes of text it holds. Of nil it is none.
func Share(q *Query) (s Shared, textBytes int) {
	if q == nil {
		return Shared{}, 0
	}
	clone, textBytes := q.Clone()
	return Shared{unique.Make(clone)}, textBytes
}

// Query returns the query; that of all children if there is none.
func (s Shared) Query() Query {
	if s == (Shared{}) {
		return Query{}
	}
	return s.handle.Value()
}
