package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// This file adds queries and indexes to the histories of the model test. What a
// query selects is known from query.Select on the model's tree.

var (
	indexPatterns = [][]string{{}, {"$"}, {"7"}, {"a"}, {"$", "$"}, {"7", "$"}, {"$", "07"}, {"07", "007", "$"}}
	indexOrders   = []string{".value", "7", "a", "7/07", "0", "a/b/7"}
)

// reindex changes the indexes of a database at random.
func (h *history) reindex(d twin) {
	var patterns [][]string
	for _, p := range indexPatterns {
		if h.rng.IntN(3) == 0 {
			patterns = append(patterns, p)
		}
	}
	var rules []state.IndexRule
	for _, p := range patterns {
		for _, on := range indexOrders {
			if h.rng.IntN(3) > 0 {
				continue
			}
			index, err := query.ParseIndex(on)
			if err != nil {
				h.t.Fatal(err)
			}
			rules = append(rules, state.IndexRule{Pattern: p, Except: literals(patterns, p), Index: index})
		}
	}
	h.log = append(h.log, fmt.Sprintf("index %v", rules))
	if err := d.db.SetIndexes(context.Background(), rules); err != nil {
		h.failf("set the indexes: %v", err)
	}
	if h.rng.IntN(2) == 0 {
		if err := enginetest.WaitForIndexes(context.Background(), d.db); err != nil {
			h.failf("wait for the indexes: %v", err)
		}
	}
}

// literals returns, for each level of a pattern, the keys that other patterns
// have in the place of its wildcard.
func literals(all [][]string, pattern []string) [][]string {
	except := make([][]string, len(pattern))
	for i, key := range pattern {
		for _, other := range all {
			if key == state.Wildcard && len(other) > i && other[i] != key && slices.Equal(other[:i], pattern[:i]) {
				except[i] = append(except[i], other[i])
			}
		}
		slices.Sort(except[i])
		except[i] = slices.Compact(except[i])
	}
	return except
}

func (h *history) randomQuery() query.Query {
	orders := []query.Order{query.ByKey(), query.ByPriority(), query.ByValue()}
	for _, on := range indexOrders {
		index, _ := query.ParseIndex(on)
		orders = append(orders, index.Order())
	}
	q := query.Query{Order: orders[h.rng.IntN(len(orders))]}
	if h.rng.IntN(2) == 0 {
		q.Lower = h.bound(q.Order)
	}
	if h.rng.IntN(2) == 0 {
		q.Upper = h.bound(q.Order)
	}
	if h.rng.IntN(2) == 0 {
		q.Limit, q.Last = 1+h.rng.IntN(4), h.rng.IntN(2) == 0
	}
	return q
}

func (h *history) bound(order query.Order) query.Bound {
	b := query.Bound{Set: true, Exclusive: h.rng.IntN(3) == 0}
	if order == query.ByKey() {
		b.Value = tree.StringLeaf(h.key())
		return b
	}
	n, err := tree.Decode(strings.NewReader(h.scalar()), tree.DecodeOptions{})
	if err != nil || n.HasPlaceholders() {
		n = tree.Node{}
	}
	if b.Value = n.Leaf(); order == query.ByPriority() && b.Value.Kind() == tree.Boolean {
		b.Value = tree.IntegerLeaf(5)
	}
	if h.rng.IntN(3) == 0 {
		b.Key = h.key()
	}
	return b
}

// query compares a random query at p with what it selects in the model.
func (h *history) query(d twin, p tree.Path) {
	q := h.randomQuery()
	s := d.db.View()
	defer s.Close()
	selection, err := s.Select(p, q, tree.Export)
	switch fault.KindOf(err) {
	case fault.Invalid:
		if !strings.Contains(err.Error(), "Index not defined") {
			h.failf("query %+v at %s: %v", q, p, err)
		}
		return
	case fault.Unavailable:
		return
	}
	if err != nil {
		h.failf("query %+v at %s: %v", q, p, err)
	}
	defer func() { _ = selection.Close() }()
	var got bytes.Buffer
	if err := selection.PrintTo(&got); err != nil {
		h.failf("query %+v at %s: %v", q, p, err)
	}
	if got, want := sorted(h, got.Bytes()), selected(d.tree, p, q); got != want {
		h.failf("query %+v at %s\n got %s\nwant %s\n  of %s", q, p, got, want, d.tree.Export(pathKeys(p)))
	}
	h.queries++
}

// sorted returns a result with its children in key order: a large one has them
// as they were found.
func sorted(h *history, result []byte) string {
	n, err := tree.DecodeBytes(result, tree.DecodeOptions{})
	if err != nil {
		h.failf("the result is not JSON: %v\n%s", err, result)
	}
	if n.IsNull() {
		return string(result) // null or {}
	}
	return string(tree.AppendJSON(nil, n, tree.Export))
}

// selected returns what a query must give.
func selected(from *model.Tree, p tree.Path, q query.Query) string {
	n, err := tree.Decode(strings.NewReader(from.Export(pathKeys(p))), tree.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	if !n.IsObject() {
		return "null"
	}
	keys := query.Select(n, q)
	slices.SortFunc(keys, tree.CompareKeys)
	text := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(tree.AppendString(text, key), ':')
		text = tree.AppendJSON(text, n.Child(key), tree.Export)
	}
	return string(append(text, '}'))
}
