package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// dueIndexes has the children of /sessions expire by their t.
func dueIndexes() *layout.Indexes {
	x := &layout.Indexes{Children: map[string]*layout.Indexes{
		"sessions": {Due: []layout.Index{{Number: 1, Order: query.ByChild(tree.Path{}.Child("t"))}}},
	}}
	x.NoteExpiry()
	return x
}

// checkDue returns the first row of what expires that is missing.
func checkDue(t Tree, x *layout.Indexes) error {
	var first error
	err := inspect.CheckDue(t.Reader(), x, func(uint32) bool { return false }, func(f inspect.Flaw) bool {
		first = f.Err
		return false
	})
	return errors.Join(first, err)
}

// dueRows lists the rows of what expires, as time and child.
func dueRows(t *testing.T, tree Tree) []string {
	t.Helper()
	var list []string
	from, to := layout.DueRange(tree.Reader().ID)
	err := tree.Reader().EachDueRow(from, to, func(key []byte) bool {
		row, err := layout.CutDueKey(key)
		if err != nil {
			t.Error(err)
		}
		list = append(list, fmt.Sprintf("%d %s", row.Millis, row.Child))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The rows follow the data write by write: none is missing, and none is too many.
func TestDueRowsFollowTheData(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 24, DefaultChunkBytes} {
		s := openStand(t, Options{ChunkBytes: limit})
		s.indexes = dueIndexes()
		for _, step := range []struct{ at, body, want string }{
			{"sessions/a", `{"t":5,"name":"x"}`, "5 /sessions/a"},
			{"sessions/a/t", `7`, "7 /sessions/a"},
			{"sessions/a/name", `"y"`, "7 /sessions/a"},
			{"sessions/b/t", `6.5`, "7 /sessions/a,7 /sessions/b"},
			{"sessions/b/t/deeper", `1`, "7 /sessions/a"},
			{"sessions/b/t", `"text"`, "7 /sessions/a"},
			{"sessions/a/t", `null`, ""},
			{"sessions", `{"c":{"t":1},"d":{"t":-2},"e":{"t":true}}`, "-2 /sessions/d,1 /sessions/c"},
			{"other", `{"c":{"t":1}}`, "-2 /sessions/d,1 /sessions/c"},
			{"sessions/c", `null`, "-2 /sessions/d"},
			{"", `{"sessions":{"f":{"t":9}}}`, "9 /sessions/f"},
			{"sessions", `"a leaf"`, ""},
			{"sessions/g/t", `3`, "3 /sessions/g"},
			{"", `null`, ""},
		} {
			s.put(step.at, step.body)
			rows := dueRows(t, s.Live(s.id))
			slices.Sort(rows)
			want := strings.Split(step.want, ",")
			slices.Sort(want)
			if got := strings.Join(rows, ","); got != strings.Join(want, ",") {
				t.Errorf("limit %d: after %s = %s there are %s, want %s", limit, step.at, step.body, got, step.want)
			}
			if err := checkDue(s.Live(s.id), s.indexes); err != nil {
				t.Errorf("limit %d: after %s = %s: %v", limit, step.at, step.body, err)
			}
		}
	}
}

// What is left of the rows when very many children go at once is marked, to be swept.
func TestDueRowsOfManyAreLeft(t *testing.T) {
	t.Parallel()
	s := openStand(t, Options{ChunkBytes: -1, StepChildren: 2})
	s.indexes = dueIndexes()
	s.put("other", `1`) // else all rows go with the root
	s.put("sessions", `{"a":{"t":1},"b":{"t":2},"c":{"t":3},"d":{"t":4}}`)
	s.put("sessions", `null`)
	mark, err := s.Live(s.id).Reader().SweepMark()
	if rows := dueRows(t, s.Live(s.id)); err != nil || mark == nil || len(rows) != 2 {
		t.Errorf("the mark is %x, %v, and %v are left", mark, err, rows)
	}
}

// A store that holds such rows is not opened by versions that do not know them.
func TestDueRowsRaiseTheFormat(t *testing.T) {
	t.Parallel()
	s := openStand(t, Options{})
	s.indexes = dueIndexes()
	for _, step := range []struct {
		body string
		want byte
	}{{`{"t":"never"}`, layout.FormatAuthors}, {`{"t":5}`, layout.FormatDue}, {`null`, layout.FormatDue}} {
		s.put("sessions/a", step.body)
		row, err := metaRow(s.db, layout.FormatKey, 4)
		if err != nil || !bytes.Equal(row, []byte{0, 0, 0, step.want}) {
			t.Errorf("after %s the format is %x, %v, want %d", step.body, row, err, step.want)
		}
	}
}
