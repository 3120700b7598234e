package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestRowsOfOneWriteAreBounded: few bytes can change the priorities of many long strings, all of whose rows are written anew.
func TestRowsOfOneWriteAreBounded(t *testing.T) {
	defer func(most int64) { mostRows = most }(mostRows)
	s := newStand(t, 100)
	var body []string
	for i := range 8 {
		s.put(fmt.Sprintf("a/b%d", i), `"`+strings.Repeat("x", 1000)+`"`)
		body = append(body, fmt.Sprintf(`"b%d/.priority":1`, i))
	}
	for _, most := range []int64{5000, 1 << 30} {
		mostRows = most
		write := patchWrite(t, "a", "{"+strings.Join(body, ",")+"}")
		b, err := s.Build(s.live(), tree.Change{Write: write, Position: 20, Millis: 1}, s.indexes, nil, nil)
		if err == nil {
			b.Close()
		}
		if got := errors.Is(err, ErrTooMuch); got != (most == 5000) {
			t.Errorf("with %d bytes at most the write ends with %v", most, err)
		}
	}
}

// TestRowsBelowLongKeysAreBounded: the row of each child has the keys of all nodes above it, so few bytes can be very many.
func TestRowsBelowLongKeysAreBounded(t *testing.T) {
	defer func(many int64) { manyRows = many }(manyRows)
	manyRows = 20_000
	s := newStand(t, 0)
	at := strings.Repeat("/"+strings.Repeat("k", 700), 10)
	var children, nulls, texts []string
	for i := range 100 {
		children = append(children, fmt.Sprintf(`"c%d":%d`, i, i))
		nulls = append(nulls, fmt.Sprintf(`"c%d":null`, i))
		texts = append(texts, fmt.Sprintf(`"c%d":"%01000d"`, i, i))
	}
	build := func(w tree.Write, prepare bool) error {
		var prepared *Prepared
		if prepare {
			var err error
			if prepared, err = s.Prepare(s.live(), w, s.indexes, 1); err != nil {
				return err
			}
			defer prepared.Close()
		}
		b, err := s.Build(s.live(), tree.Change{Write: w, Position: 20, Millis: 1}, s.indexes, prepared, nil)
		if err == nil {
			b.Close()
		}
		return err
	}
	put := putWrite(t, at, "{"+strings.Join(children, ",")+"}")
	parts := patchWrite(t, at, `{"a":{`+strings.Join(children[:30], ",")+`},"b":{`+strings.Join(children[:30], ",")+`}}`)
	s.apply(put, nil)
	for _, c := range []struct {
		name    string
		write   tree.Write
		prepare bool
		refused bool
	}{
		{"children", put, false, true},
		{"children that are prepared", put, true, true},
		{"children of several nodes", parts, false, true},
		{"children of several nodes that are prepared", parts, true, true},
		{"a patch of children", patchWrite(t, at, "{"+strings.Join(children, ",")+"}"), false, true},
		{"a patch of nulls", patchWrite(t, at, "{"+strings.Join(nulls, ",")+"}"), false, true},
		{"what is as large itself", putWrite(t, "texts", "{"+strings.Join(texts, ",")+"}"), false, false},
		{"what is as large itself, prepared", putWrite(t, "texts", "{"+strings.Join(texts, ",")+"}"), true, false},
	} {
		for _, s.Spread = range []int{0, 4} {
			if got := build(c.write, c.prepare); errors.Is(got, ErrTooMuch) != (c.refused && s.Spread > 0) || got != nil && !errors.Is(got, ErrTooMuch) {
				t.Errorf("%s, with a spread of %d: %v", c.name, s.Spread, got)
			}
		}
	}
}

// TestRowsThatGoAreBounded: what a write deletes takes room in its batch, too. So do the index rows of nodes that lose their last child,
// and those of what expires, of which a chunk has one for each child.
func TestRowsThatGoAreBounded(t *testing.T) {
	defer func(many int64) { manyRows = many }(manyRows)
	manyRows = 30_000
	long := strings.Repeat("p", 700)
	expiring := &layout.Indexes{Due: []layout.Index{{Number: 2, Order: query.ByChild(parsePath(t, "t"))}}}
	indexes := &layout.Indexes{Children: map[string]*layout.Indexes{
		"values": {Here: []layout.Index{{Number: 1, Order: query.ByValue()}}},
		"due":    {Wildcard: expiring},
	}}
	indexes.NoteExpiry()
	for _, c := range []struct {
		name             string
		limit            int
		at, child, patch string // of each child, with its number
	}{
		{"the ends of chains", 0, "chains", `"c%d":{"d":{"e":{".value":1,".priority":"` + long + `"},".priority":"` + long + `"}}`, `"c%d/d/e":null`},
		{"values that are indexed", 0, "values", `"c%d":"` + long + `"`, `"c%d":null`},
		{"times in a chunk", 2 << 10, "due/" + long, `"c%d":{"t":1}`, `"c%d/t":2`},
	} {
		s := newStand(t, c.limit)
		s.indexes = indexes
		var children, changes []string
		for i := range 50 {
			children, changes = append(children, fmt.Sprintf(c.child, i)), append(changes, fmt.Sprintf(c.patch, i))
		}
		s.put(c.at, "{"+strings.Join(children, ",")+"}")
		s.put(c.at+"/rest", "1") // so that the node stays
		for _, s.Spread = range []int{0, 1} {
			change := tree.Change{Write: patchWrite(t, c.at, "{"+strings.Join(changes, ",")+"}"), Position: 20, Millis: 1}
			b, err := s.Build(s.live(), change, s.indexes, nil, nil)
			if err == nil {
				b.Close()
			}
			if errors.Is(err, ErrTooMuch) != (s.Spread > 0) || err != nil && !errors.Is(err, ErrTooMuch) {
				t.Errorf("%s, with a spread of %d: %v", c.name, s.Spread, err)
			}
		}
	}
}

// TestDeleteWithManyTimes: a delete is not refused for the rows of what expires there. Those that take too much are left to a sweep.
func TestDeleteWithManyTimes(t *testing.T) {
	defer func(many int64) { manyRows = many }(manyRows)
	manyRows = 40_000
	s := newStand(t, 2<<10)
	s.indexes = &layout.Indexes{Wildcard: &layout.Indexes{Due: []layout.Index{{Number: 2, Order: query.ByChild(parsePath(t, "t"))}}}}
	s.indexes.NoteExpiry()
	var children []string
	for i := range 100 {
		children = append(children, fmt.Sprintf(`"c%d":{"t":1}`, i))
	}
	at := strings.Repeat("p", 700)
	s.put(at, "{"+strings.Join(children, ",")+"}")
	s.put("other", "1") // with the last node of a database all its index rows go
	for _, s.Spread = range []int{0, 1} {
		b, err := s.Build(s.live(), tree.Change{Write: putWrite(t, at, "null"), Position: 20, Millis: 1}, s.indexes, nil, nil)
		if err != nil {
			t.Fatalf("with a spread of %d: %v", s.Spread, err)
		}
		if left, bytes := b.LeavesDue(), b.Rows.Len(); left != (s.Spread > 0) || left && int64(bytes) > manyRows+5_000 {
			t.Errorf("with a spread of %d the delete takes %d bytes, and leaves rows: %t", s.Spread, bytes, left)
		}
		b.Close()
	}
}

// TestNullsCountByTheirNames: a null has no bytes of its own, so a PATCH that deletes very many children with their index rows would be refused.
func TestNullsCountByTheirNames(t *testing.T) {
	var nulls []string
	for i := range 1000 {
		nulls = append(nulls, fmt.Sprintf(`"%050d":null`, i))
	}
	m := Maker{Spread: 4, ManyRows: 1}
	if got := m.mostRows(patchWrite(t, "a", "{"+strings.Join(nulls, ",")+"}")); got < 4*50_000 || got > 4*100_000 {
		t.Errorf("the rows of 1,000 nulls with names of 50 bytes may take %d bytes", got)
	}
}
