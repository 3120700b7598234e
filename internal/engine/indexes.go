package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
)

// An IndexRule asks for an index at every location that a pattern matches.
type IndexRule struct {
	// Pattern has a key for each level, Wildcard for any that is not in Except.
	Pattern []string
	// Except are, for each level, the keys that have rules of their own, to
	// which the wildcard does not extend.
	Except [][]string
	Index  query.Index
}

// Wildcard stands for any key in a pattern. It is not a valid key.
const Wildcard = "$"

// identity tells rules apart: two that cover the same locations with the same
// order share an index.
func (r IndexRule) identity() string {
	return fmt.Sprintf("%q %q %s", r.Pattern, r.Except, r.Index)
}

// The states of an index.
const (
	indexBuilding = "building" // writes keep its rows, those of older data are added
	indexReady    = "ready"
	indexDropping = "dropping" // writes do not keep its rows, and they are removed
)

// An indexEntry is an index of the database, as the settings hold it.
type indexEntry struct {
	Number  uint32     `json:"number"`
	Pattern []string   `json:"pattern"`
	Except  [][]string `json:"except"`
	On      string     `json:"on"`
	State   string     `json:"state"`
	Cursor  []byte     `json:"cursor,omitempty"`
}

func (e indexEntry) rule() (IndexRule, error) {
	index, err := query.ParseIndex(e.On)
	return IndexRule{e.Pattern, e.Except, index}, err
}

// An indexList is all indexes of a database. It is the setting "indexes".
type indexList struct {
	Next    uint32       `json:"next"`
	Entries []indexEntry `json:"entries"`
}

func decodeIndexes(row []byte) (indexList, error) {
	list := indexList{Next: 1}
	if row == nil {
		return list, nil
	}
	err := json.Unmarshal(row, &list)
	return list, err
}

func (l indexList) encode() []byte {
	row, err := json.Marshal(l)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	return row
}

// kept returns the numbers of the indexes that writes keep. What a number stands
// for never changes.
func (l indexList) kept() []uint32 {
	var numbers []uint32
	for _, e := range l.Entries {
		if e.State != indexDropping {
			numbers = append(numbers, e.Number)
		}
	}
	return numbers
}

// keepsLike reports whether writes keep the same indexes.
func (l indexList) keepsLike(other indexList) bool { return slices.Equal(l.kept(), other.kept()) }

// tree returns the indexes that writes keep.
func (l indexList) tree() (*store.Indexes, error) {
	root := &store.Indexes{}
	for _, e := range l.Entries {
		if e.State == indexDropping {
			continue
		}
		rule, err := e.rule()
		if err != nil {
			return nil, err
		}
		x := root
		for i, key := range e.Pattern {
			x = descend(x, key, e.Except[i])
		}
		x.Here = append(x.Here, store.Index{Number: e.Number, Order: rule.Index.Order()})
	}
	return root, nil
}

// descend returns the part of the tree below a key of a pattern. Keys with rules
// of their own get an entry, so that the wildcard does not reach them.
func descend(x *store.Indexes, key string, except []string) *store.Indexes {
	if x.Children == nil {
		x.Children = make(map[string]*store.Indexes)
	}
	if key == Wildcard {
		for _, own := range except {
			if x.Children[own] == nil {
				x.Children[own] = &store.Indexes{}
			}
		}
		if x.Wildcard == nil {
			x.Wildcard = &store.Indexes{}
		}
		return x.Wildcard
	}
	if x.Children[key] == nil {
		x.Children[key] = &store.Indexes{}
	}
	return x.Children[key]
}

// with returns the list after the rules have changed: indexes that are asked for
// and not there are begun, those that nobody asks for are dropped.
func (l indexList) with(rules []IndexRule) indexList {
	wanted := make(map[string]IndexRule)
	for _, r := range rules {
		if r.Index.Order() != query.ByPriority() { // it is kept anyway
			wanted[r.identity()] = r
		}
	}
	next := indexList{Next: l.Next}
	for _, e := range l.Entries {
		rule, err := e.rule()
		id := rule.identity()
		if _, ok := wanted[id]; (!ok || err != nil) && e.State != indexDropping {
			e.State, e.Cursor = indexDropping, nil
		} else if e.State != indexDropping {
			delete(wanted, id)
		}
		next.Entries = append(next.Entries, e)
	}
	ids := make([]string, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r := wanted[id]
		next.Entries = append(next.Entries, indexEntry{
			Number: next.Next, Pattern: r.Pattern, Except: r.Except, On: r.Index.String(), State: indexBuilding,
		})
		next.Next++
	}
	return next
}

// find returns the entry with a number.
func (l indexList) find(number uint32) int {
	return slices.IndexFunc(l.Entries, func(e indexEntry) bool { return e.Number == number })
}

// unfinished returns an index that needs work, if there is one.
func (l indexList) unfinished() (indexEntry, bool) {
	for _, e := range l.Entries {
		if e.State != indexReady {
			return e, true
		}
	}
	return indexEntry{}, false
}

// indexFor returns the index for a query at a location: nil with no error if the
// order needs none or if it is not ready yet.
func (s *settings) indexFor(q query.Query, at string, here []store.Index) (*store.Index, error) {
	index, needed := q.Order.Index()
	if !needed || q.Order == query.ByPriority() {
		return nil, nil
	}
	for _, x := range here {
		if x.Order == q.Order {
			if i := s.list.find(x.Number); i >= 0 && s.list.Entries[i].State == indexReady {
				return &x, nil
			}
			return nil, nil
		}
	}
	return nil, fault.New(fault.Invalid, `Index not defined, add ".indexOn": %q, for path %q, to the rules`, index.String(), at)
}
