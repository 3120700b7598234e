package layout

import (
	"bytes"
	"math"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzDueKey takes any bytes as the key of a row of what expires, and makes one of a time and a
// path, which says the same when it is taken apart. Its time is the first whole one at which the child
// is due.
func FuzzDueKey(f *testing.F) {
	for _, time := range []float64{0, 1.5, -1.5, 1_700_000_000_000, 1 << 53, -(1 << 53), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		f.Add(DueKey(nil, 3, 7, query.LeafValue(tree.DoubleLeaf(time)), mustPath(f, "/a/b")), time, "/a/b/17")
	}
	f.Add(SweepKey(3), 0.0, "/")
	f.Add(DuePrefix(3, 7), 0.0, "/a")
	f.Fuzz(func(t *testing.T, key []byte, time float64, path string) {
		if row, err := CutDueKey(key); err == nil {
			if number, ok := DueNumber(key); !ok || number != row.Number || !IsDueKey(key) {
				t.Errorf("% x is of %d, and of %d, %t", key, row.Number, number, ok)
			}
			if !bytes.HasSuffix(key, appendPath(nil, row.Child)) {
				t.Errorf("% x is of %s", key, row.Child)
			}
		}
		child, err := tree.ParsePath(path)
		if err != nil || math.IsNaN(time) || math.IsInf(time, 0) {
			return
		}
		value := query.LeafValue(tree.DoubleLeaf(time))
		made := DueKey(nil, 3, 7, value, child)
		row, err := CutDueKey(made)
		if err != nil || row.Number != 7 || row.Child != child {
			t.Fatalf("the key of %v at %s is taken apart as %+v, %v", time, child, row, err)
		}
		if math.Abs(time) < 1<<53 && (!IsDue(value, row.Millis) || IsDue(value, row.Millis-1)) {
			t.Errorf("%v is due at %d", time, row.Millis)
		}
		if math.Abs(time) < 1<<53 && bytes.Compare(made, DueAt(3, 7, row.Millis-1)) < 0 {
			t.Errorf("the key of %v comes before those of %d", time, row.Millis-1)
		}
	})
}

// FuzzWhole reads any bytes as the row of a whole record, and writes records as such rows, which
// read the same.
func FuzzWhole(f *testing.F) {
	for _, r := range someRecords(f) {
		if row := AppendRecord(nil, r); len(row) < 1000 {
			f.Add(row)
			f.Add(AppendWhole(nil, r, nil))
		}
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		if record, err := DecodeWhole(nil, row); err == nil {
			if after, err := DecodeWhole([]byte("before"), row); err != nil || string(after) != "before"+string(record) {
				t.Errorf("%x is %x, and after other bytes %x, %v", row, record, after, err)
			}
		}
		r, err := DecodeRecord(row, 9)
		if err != nil {
			return
		}
		stored := AppendRecord(nil, r)
		for _, texts := range []map[int]*Text{nil, textsOf(r)} {
			if got, err := DecodeWhole(nil, AppendWhole(nil, r, texts)); err != nil || !bytes.Equal(got, stored) {
				t.Errorf("%x is stored whole and read as %x, %v, want %x", row, got, err, stored)
			}
		}
	})
}

// textsOf makes the texts of some nodes of a record.
func textsOf(r Record) map[int]*Text {
	texts := map[int]*Text{}
	for i, a := range r.Assignments {
		if i%2 == 0 && !a.Node.IsNull() {
			texts[i] = NewText(a.Node, 100*i)
		}
	}
	return texts
}
