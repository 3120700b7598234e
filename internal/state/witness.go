package state

import (
	"github.com/livetree/livetree/internal/denials"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// This file finds who is to see how a request is judged: a nil Witness, at no cost, unless
// somebody looks at what is denied.

// WitnessWrite returns who sees the judgement of a write, whose key the server draws if push
// is set.
func (s *Source) WitnessWrite(w tree.Write, push bool) *denials.Witness {
	if !s.Metrics.Denials.Watched() {
		return nil
	}
	return s.Metrics.Denials.Witness(s.Epoch(), denials.OfWrite(w, push))
}

// witnessRead returns who sees the judgement of a read, by a query if it is not nil.
func (s *Source) witnessRead(p tree.Path, q *query.Query) *denials.Witness {
	if !s.Metrics.Denials.Watched() {
		return nil
	}
	request := denials.Request{Verb: denials.Read, Path: p}
	if q != nil {
		asked := *q // not q itself, which need not be on the heap
		request.Query = &asked
	}
	return s.Metrics.Denials.Witness(s.Epoch(), request)
}

// witnessEarly returns who sees the judgement of a write whose body is not read yet.
func (s *Source) witnessEarly(p tree.Path) *denials.Witness {
	if !s.Metrics.Denials.Watched() {
		return nil
	}
	return s.Metrics.Denials.Witness(s.Epoch(), denials.Request{Verb: denials.Write, Path: p})
}
