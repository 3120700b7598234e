package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
