package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// numbered returns an object of n children without priorities.
func numbered(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"k%06d":%d`, i, i)
	}
	return "{" + text.String()[1:] + "}"
}

func priorityWrite(t testing.TB, at string, priority int64) tree.Write {
	t.Helper()
	return tree.PutPriority(parsePath(t, at), tree.LeafNode(tree.IntegerLeaf(priority)))
}

// TestGrowthFirstPriority: the first priority among the children of a node writes
// as many rows among many children as among a few thousand.
func TestGrowthFirstPriority(t *testing.T) {
	const n = 1200
	for _, children := range []int{n, 4 * n, 16 * n} {
		s := newStand(t, Options{})
		s.put("a", numbered(children))
		b := s.build(priorityWrite(t, "a/k000007", 5))
		rows := b.Rows.Count()
		b.Close()
		// Beside those of the index: the child, its old and its new index row, what says
		// that the index is there and to be built, the format version and the change.
		if limit := uint32(s.opts.PriorityRows + 7); rows > limit {
			t.Errorf("among %d children the first priority writes %d rows, want %d at most", children, rows, limit)
		}
	}
}

// TestGrowthFirstPriorities: so do the first priorities of many nodes in one PATCH,
// for all of them together.
func TestGrowthFirstPriorities(t *testing.T) {
	for _, nodes := range []int{20, 80, 320} {
		s := newStand(t, Options{ChunkBytes: 64})
		s.put("a", groups(nodes))
		w := patchWrite(t, everyGroup(nodes, `"a/%s/k000007/.priority":5`))
		b := s.build(w)
		rows := b.Rows.Count()
		b.Close()
		if limit := uint32(s.opts.PriorityRows + 6*nodes); rows > limit {
			t.Errorf("the first priorities of %d nodes write %d rows, want %d at most", nodes, rows, limit)
		}
	}
}

// groups returns an object of n nodes, each of 20 children.
func groups(n int) string { return everyGroup(n, `"%s":`+numbered(20)) }

// everyGroup returns an object with a member for each of n nodes.
func everyGroup(n int, member string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(member, fmt.Sprintf("n%03d", i))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestCheckOfUnbuiltPriorityIndex: while an index by priority is built, the check
// knows which rows must be there.
func TestCheckOfUnbuiltPriorityIndex(t *testing.T) {
	parent := func(s *stand) []byte { return layout.DataKey(nil, s.id, parsePath(t, "a")) }
	row := func(s *stand, child string, value query.Value) []byte {
		return layout.IndexKey(nil, parent(s), layout.PriorityIndex, value, layout.AppendComponent(nil, child))
	}
	flaws := map[string]func(s *stand) (key, value []byte){ // a nil value deletes the row
		"row before the cursor": func(s *stand) ([]byte, []byte) { return row(s, "k000001", query.Value{}), nil },
		"row of a priority":     func(s *stand) ([]byte, []byte) { return row(s, "k000090", query.LeafValue(tree.IntegerLeaf(5))), nil },
		"entry in the list":     func(s *stand) ([]byte, []byte) { return layout.UnbuiltKey(s.id, 2, parent(s)), nil },
		"row of nothing":        func(s *stand) ([]byte, []byte) { return row(s, "nothing", query.Value{}), []byte{} },
		"second row":            func(s *stand) ([]byte, []byte) { return row(s, "k000090", query.Value{}), []byte{} },
		"state": func(s *stand) ([]byte, []byte) {
			return layout.IndexPrefix(nil, parent(s), layout.PriorityIndex), []byte{1, 2}
		},
		"row with a value": func(s *stand) ([]byte, []byte) { return row(s, "k000001", query.Value{}), []byte{1} },
		"entry that is no path": func(s *stand) ([]byte, []byte) {
			return layout.UnbuiltKey(s.id, 9, append(layout.DataPrefix(s.id), 'x')), []byte{}
		},
		"entry without a position": func(s *stand) ([]byte, []byte) {
			return layout.UnbuiltKey(s.id, 9, layout.DataPrefix(s.id))[:8], []byte{}
		},
	}
	for name, flaw := range flaws {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Options{PriorityRows: 10, ChunkBytes: 64})
			s.put("a", numbered(100))
			s.commit(priorityWrite(t, "a/k000090", 5))
			s.checkIndexes()
			key, value := flaw(s)
			err := s.db.Set(key, value, pebble.NoSync)
			if value == nil {
				err = s.db.Delete(key, pebble.NoSync)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := checkIndexes(s.Live(s.id), nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

// TestFirstCommitRaisesTheFormat: versions that would not understand a log row, or take
// an index for whole that is not, are kept out from the first commit on.
func TestFirstCommitRaisesTheFormat(t *testing.T) {
	mem := vfs.NewMem()
	s := openStand(t, Options{FS: mem, PriorityRows: 5, ChunkBytes: 64})
	version := func() uint32 {
		row, err := metaRow(s.db, layout.FormatKey, 4)
		if err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint32(row)
	}
	s.leave(goldenLeft...)
	if got := version(); got != layout.FormatFirst {
		t.Errorf("a store without a commit has format %d, want %d", got, layout.FormatFirst)
	}
	s.put("many", numbered(6))
	if got := version(); got != layout.FormatAuthors {
		t.Errorf("a store with a commit has format %d, want %d", got, layout.FormatAuthors)
	}
	s.commit(priorityWrite(t, "many/k000001", 5))
	if got := version(); got != layout.FormatAuthors {
		t.Errorf("a store with an index that is not whole has format %d, want %d", got, layout.FormatAuthors)
	}
	s.close()
	a, err := OpenArchive("data", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if err := a.CheckMarks(func(f inspect.Flaw) { t.Errorf("the check says %v", f.Err) }); err != nil {
		t.Error(err)
	}
}
