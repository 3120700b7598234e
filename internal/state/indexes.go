package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An IndexRule asks for an index at every location that a pattern matches.
type IndexRule struct {
	// Pattern has a key for each level, Wildcard for any that is not in Except.
	Pattern []string
	// Except are, for each level, the keys that have rules of their own, to
	// which the wildcard does not extend.
	Except [][]string
	Index  query.Index
	// Expires makes it one by which children expire, and no query reads.
	Expires bool
}

// Wildcard stands for any key in a pattern. It is not a valid key.
const Wildcard = "$"

// identity tells rules apart: two that cover the same locations with the same
// order share an index.
func (r IndexRule) identity() string {
	return fmt.Sprintf("%q %q %s %t", r.Pattern, r.Except, r.Index, r.Expires)
}

// The states of an index.
const (
	IndexBuilding = "building" // writes keep its rows, those of older data are added
	IndexReady    = "ready"
	IndexDropping = "dropping" // writes do not keep its rows, and they are removed
)

// An IndexEntry is an index of the database, as the settings hold it.
type IndexEntry struct {
	Number  uint32     `json:"number"`
	Pattern []string   `json:"pattern"`
	Except  [][]string `json:"except"`
	On      string     `json:"on"`
	Expires bool       `json:"expires,omitempty"`
	State   string     `json:"state"`
	Cursor  []byte     `json:"cursor,omitempty"`
}

// Rule returns what asked for the index.
func (e IndexEntry) Rule() (IndexRule, error) {
	index, err := query.ParseIndex(e.On)
	return IndexRule{e.Pattern, e.Except, index, e.Expires}, err
}

// An IndexList is all indexes of a database. It is the setting "indexes".
type IndexList struct {
	Next    uint32       `json:"next"`
	Entries []IndexEntry `json:"entries"`
}

func decodeIndexes(row []byte) (IndexList, error) {
	list := IndexList{Next: 1}
	if row == nil {
		return list, nil
	}
	err := json.Unmarshal(row, &list)
	return list, err
}

// BuildsExpiry reports whether the index of a rule by which something expires is being built.
func BuildsExpiry(rows store.Settings) (bool, error) {
	list, err := decodeIndexes(rows[SettingIndexes])
	return slices.ContainsFunc(list.Entries, func(e IndexEntry) bool { return e.Expires && e.State == IndexBuilding }), err
}

// Encode returns the setting.
func (l IndexList) Encode() []byte {
	row, err := json.Marshal(l)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	return row
}

// kept returns the numbers of the indexes that writes keep. What a number stands
// for never changes.
func (l IndexList) kept() []uint32 {
	var numbers []uint32
	for _, e := range l.Entries {
		if e.State != IndexDropping {
			numbers = append(numbers, e.Number)
		}
	}
	return numbers
}

// keepsLike reports whether writes keep the same indexes.
func (l IndexList) keepsLike(other IndexList) bool { return slices.Equal(l.kept(), other.kept()) }

// noIndexes is shared by all databases that have no index. It never changes.
var noIndexes = &store.Indexes{}

// tree returns the indexes that writes keep.
func (l IndexList) tree() (*store.Indexes, error) {
	if len(l.Entries) == 0 {
		return noIndexes, nil
	}
	root := &store.Indexes{}
	for _, e := range l.Entries {
		if e.State == IndexDropping {
			continue
		}
		rule, err := e.Rule()
		if err == nil && len(e.Except) != len(e.Pattern) {
			err = fmt.Errorf("index %d has %d levels, and says of %d which keys have rules of their own", e.Number, len(e.Pattern), len(e.Except))
		}
		if err != nil {
			return nil, err
		}
		x := root
		for i, key := range e.Pattern {
			x = descend(x, key, e.Except[i])
		}
		index := store.Index{Number: e.Number, Order: rule.Index.Order()}
		if e.Expires {
			x.Due = append(x.Due, index)
		} else {
			x.Here = append(x.Here, index)
		}
	}
	root.NoteExpiry()
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

// With returns the list after the rules have changed: indexes that are asked for
// and not there are begun, those that nobody asks for are dropped.
func (l IndexList) With(rules []IndexRule) IndexList {
	wanted := make(map[string]IndexRule)
	for _, r := range rules {
		if r.Index.Order() != query.ByPriority() { // it is kept anyway
			wanted[r.identity()] = r
		}
	}
	next := IndexList{Next: l.Next}
	for _, e := range l.Entries {
		rule, err := e.Rule()
		id := rule.identity()
		if _, ok := wanted[id]; (!ok || err != nil) && e.State != IndexDropping {
			e.State, e.Cursor = IndexDropping, nil
		} else if e.State != IndexDropping {
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
		next.Entries = append(next.Entries, IndexEntry{
			Number: next.Next, Pattern: r.Pattern, Except: r.Except, On: r.Index.String(), Expires: r.Expires, State: IndexBuilding,
		})
		next.Next++
	}
	return next
}

// Find returns where the entry with a number is, -1 if there is none.
func (l IndexList) Find(number uint32) int {
	return slices.IndexFunc(l.Entries, func(e IndexEntry) bool { return e.Number == number })
}

// Unfinished returns an index that needs work, if there is one. Those that are
// dropped come first: that frees space, which building may be waiting for.
func (l IndexList) Unfinished() (IndexEntry, bool) {
	for _, state := range []string{IndexDropping, IndexBuilding} {
		for _, e := range l.Entries {
			if e.State == state {
				return e, true
			}
		}
	}
	return IndexEntry{}, false
}

// IndexFor returns the index for a query at a location: nil with no error if the
// order needs none or if it is not ready yet.
func (s *Settings) IndexFor(q query.Query, at tree.Path) (*store.Index, error) {
	index, needed := q.Order.Index()
	if !needed || q.Order == query.ByPriority() {
		return nil, nil
	}
	for _, x := range s.Indexes.At(at) {
		if x.Order == q.Order {
			if i := s.List.Find(x.Number); i >= 0 && s.List.Entries[i].State == IndexReady {
				return &x, nil
			}
			return nil, nil
		}
	}
	return nil, fault.Wrap(fault.Invalid, query.ErrNoIndex, `Index not defined, add ".indexOn": %q, for path %q, to the rules`, index.String(), at.String())
}
