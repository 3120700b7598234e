package layout

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// someRecords are records of every kind.
func someRecords(t testing.TB) []Record {
	p := mustPath(t, "a/7")
	long := tree.Put(p, tree.LeafNode(tree.StringLeaf(strings.Repeat("x", 2*MaxLogged))))
	return []Record{
		{Change: tree.Change{Write: tree.Put(p, tree.LeafNode(tree.IntegerLeaf(5))), Millis: 1, Author: tree.Author{By: tree.ByUID, UID: "a:b"}}},
		{Change: tree.Change{Write: tree.Put(p, tree.Node{}), Millis: 2, Author: tree.Author{By: tree.ByNobody}}},
		{Change: tree.Change{Write: tree.PutPriority(p, tree.LeafNode(tree.StringLeaf("p"))), Millis: 3}},
		{Change: tree.Change{Write: tree.Write{At: p, Patch: true}, Truncated: true}},
		{Change: tree.Change{Write: long, Millis: 4, Author: tree.Author{By: tree.BySecret}}},
		{Change: tree.Change{Settings: true, Author: tree.Author{By: tree.ByOperator}}},
		{Change: tree.Change{Settings: true}, Values: Settings{}},
		{Change: tree.Change{Settings: true}, Values: Settings{"rules": []byte("{}"), "gone": nil, "empty": {}}},
		{Change: tree.Change{Millis: 5}, Dropped: true},
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	for i, r := range someRecords(t) {
		r.Position = uint64(i)
		row := AppendRecord(nil, r)
		got, err := DecodeRecord(row, r.Position)
		if err != nil {
			t.Errorf("record %d: %v", i, err)
			continue
		}
		if again := AppendRecord(nil, got); !bytes.Equal(again, row) {
			t.Errorf("record %d is %.80q, and when it is read %.80q", i, row, again)
		}
		if got.Author != r.Author || got.Dropped != r.Dropped || !reflect.DeepEqual(got.Values, r.Values) || got.IsWhole() != r.IsWhole() {
			t.Errorf("record %d reads as %+v, want %+v", i, got, r)
		}
		for n := range min(len(row), 200) {
			if _, err := DecodeRecord(row[:n], 1); err == nil {
				t.Errorf("the first %d of %d bytes of record %d can be read", n, len(row), i)
			}
		}
	}
}

// TestRecordIsLogRow: the bytes of a record are those of the log row, if that is whole.
func TestRecordIsLogRow(t *testing.T) {
	t.Parallel()
	whole := 0
	for i, r := range someRecords(t) {
		row, fits := AppendLogRow(nil, r)
		if !fits || !r.IsWhole() || r.Values != nil {
			continue
		}
		whole++
		if record := AppendRecord(nil, r); !bytes.Equal(record, row) {
			t.Errorf("record %d is %q, its log row %q", i, record, row)
		}
	}
	if whole < 3 {
		t.Errorf("%d log rows were compared", whole)
	}
}

// TestFirstLogRow reads a row without an author.
func TestFirstLogRow(t *testing.T) {
	t.Parallel()
	row := []byte("\x01\x00\x00\x00\x01\x8b\xcf\xe5\x68\x00\x02a\x00\x01\x01\x02a\x00\x015")
	for _, paths := range []PathSet{nil, NewPathSet([]tree.Path{mustPath(t, "a")})} {
		c, ok, err := DecodeLogRow(row, 3, paths)
		if err != nil || !ok || c.Author != (tree.Author{}) || len(c.Assignments) != 1 || c.Assignments[0].Node.Leaf().Int() != 5 {
			t.Errorf("the row reads as %+v, %t, %v", c, ok, err)
		}
	}
	for _, flags := range []byte{logValues, logDropped, 0x80} {
		bad := bytes.Clone(row)
		bad[1] = flags
		if _, err := DecodeRecord(bad, 3); err == nil {
			t.Errorf("a row of version 1 with the flags %x can be read", flags)
		}
	}
}

func TestDecodeRecordRefuses(t *testing.T) {
	t.Parallel()
	good := AppendRecord(nil, Record{Change: tree.Change{Settings: true, Author: tree.Author{By: "uid", UID: "a"}}, Values: Settings{"a": nil, "b": nil}})
	if _, err := DecodeRecord(good, 1); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"another version":           append([]byte{3}, good[1:]...),
		"an author with no user":    bytes.Replace(good, []byte("\x05uid:a"), []byte("\x04uid:"), 1),
		"settings out of order":     bytes.Replace(good, []byte("\x01a\x00\x01b"), []byte("\x01b\x00\x01a"), 1),
		"a setting twice":           bytes.Replace(good, []byte("\x01a\x00\x01b"), []byte("\x01a\x00\x01a"), 1),
		"an unknown kind":           bytes.Replace(good, []byte("\x01a\x00\x01b"), []byte("\x01a\x02\x01b"), 1),
		"more settings than it has": bytes.Replace(good, []byte("\x02\x01a\x00"), []byte("\xff\xff\xff\xff\x0f\x01a\x00"), 1),
		"bytes behind it":           append(bytes.Clone(good), 0),
	} {
		if bytes.Equal(bad, good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := DecodeRecord(bad, 1); err == nil {
			t.Errorf("a record with %s can be read", name)
		}
	}
	if _, _, err := DecodeLogRow(good, 1, nil); err == nil {
		t.Error("a record with values passes for a log row")
	}
}

// FuzzRecord reads any bytes as a record: an error, or a record whose bytes read the same.
func FuzzRecord(f *testing.F) {
	for _, r := range someRecords(f) {
		if row := AppendRecord(nil, r); len(row) < 1000 {
			f.Add(row)
		}
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		r, err := DecodeRecord(row, 9)
		if err != nil {
			return
		}
		stored := AppendRecord(nil, r)
		again, err := DecodeRecord(stored, 9)
		if err != nil {
			t.Fatalf("%x is stored as %x, which cannot be read: %v", row, stored, err)
		}
		if twice := AppendRecord(nil, again); !bytes.Equal(twice, stored) {
			t.Errorf("%x is stored as %x, and that as %x", row, stored, twice)
		}
	})
}
