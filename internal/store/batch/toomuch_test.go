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
