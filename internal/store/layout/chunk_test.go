package layout

import (
	"bytes"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// FuzzChunk reads any bytes as a chunk: an error, or a node that is stored as a
// chunk which reads the same in both forms. What is stored is a fixed point.
func FuzzChunk(f *testing.F) {
	for _, seed := range []string{
		"\x00{\"a\":1}", "\x00[1,null,3]", "\x02[1,null,3]", "\x01{\".value\":5,\".priority\":\"p\"}",
		"\x03{\".priority\":1,\"0\":{\".value\":2,\".priority\":3}}", "\x00\"text\"", "\x00null", "\x00{}", "\x07{}", "", "\x00",
		"\x00{\".sv\":\"timestamp\"}", "\x00{\"7\":1,\"007\":2,\"-0\":3}", "\x00{\"a\":{\"b\":[[1],{\"c\":1e300}]}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		n, err := DecodeChunk(row)
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			_, _ = AppendChunkJSON(nil, row, form) // must not panic, whatever the bytes are
		}
		if err != nil {
			return
		}
		stored, fits := AppendChunk(nil, n, 1<<30, nil)
		if !fits {
			t.Fatalf("the chunk of %q does not fit a gigabyte", row)
		}
		again, err := DecodeChunk(stored)
		if err != nil {
			t.Fatalf("%q is stored as %q, which cannot be read: %v", row, stored, err)
		}
		if twice, _ := AppendChunk(nil, again, 1<<30, nil); !bytes.Equal(twice, stored) {
			t.Errorf("%q is stored as %q, and that as %q", row, stored, twice)
		}
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			text, err := AppendChunkJSON(nil, stored, form)
			if want := tree.AppendJSON(nil, n, form); err != nil || !bytes.Equal(text, want) {
				t.Errorf("the chunk %q prints as %q, %v, its node as %q", stored, text, err, want)
			}
		}
	})
}

// FuzzLogRow reads any bytes as a log row: an error, or a change whose row reads
// the same.
func FuzzLogRow(f *testing.F) {
	p, err := tree.ParsePath("a/7")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []tree.Change{
		{Write: tree.Put(p, tree.LeafNode(tree.IntegerLeaf(5))), Millis: 1},
		{Write: tree.Put(p, tree.Node{}), Millis: 2},
		{Write: tree.PutPriority(p, tree.LeafNode(tree.StringLeaf("p"))), Millis: 3},
		{Write: tree.Write{At: p, Patch: true}, Truncated: true},
		{Settings: true},
	} {
		row, ok := AppendLogRow(nil, Record{Change: c})
		if !ok {
			f.Fatalf("%+v has no row", c)
		}
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		c, _, err := DecodeLogRow(row, 9, nil)
		if err != nil {
			return
		}
		stored, ok := AppendLogRow(nil, Record{Change: c})
		if !ok {
			return // larger than what is kept
		}
		again, _, err := DecodeLogRow(stored, 9, nil)
		if err != nil {
			t.Fatalf("%x is stored as %x, which cannot be read: %v", row, stored, err)
		}
		if twice, _ := AppendLogRow(nil, Record{Change: again}); !bytes.Equal(twice, stored) {
			t.Errorf("%x is stored as %x, and that as %x", row, stored, twice)
		}
	})
}
