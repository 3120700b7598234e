package tree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/tree"
)

// record is a typical chat message: ten fields, 280 bytes.
const record = `{"active":true,"author":"3kfLmQ2ZtXgYc8","body":"See you at the harbour, eight sharp. Bring the maps!",` +
	`"created":1767225600123,"edited":1767225612456,"likes":17,"room":"-OHxQ2bKz9fVtR4mWn7L",` +
	`"score":0.8437512,"tags":{"maps":true,"travel":true},"title":"Saturday, 10 January"}`

// records returns an object of n records under push keys, in order.
func records(n int) []byte {
	out := []byte{'{'}
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `"-OHxQ2%06dfVtR4mWn":%s`, i, record)
	}
	return append(out, '}')
}

const largeRecords = 2400 // about 0.7 MB

func BenchmarkDecodeRecord(b *testing.B) {
	text := []byte(record)
	b.Run("bytes", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := tree.DecodeBytes(text, tree.DecodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reader", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		r := bytes.NewReader(text)
		for b.Loop() {
			r.Reset(text)
			if _, err := tree.Decode(r, tree.DecodeOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeLarge(b *testing.B) {
	text := records(largeRecords)
	reader := bytes.NewReader(text)
	decoders := []struct {
		name   string
		decode func() error
	}{
		{"tree", func() error {
			_, err := tree.DecodeBytes(text, tree.DecodeOptions{})
			return err
		}},
		{"tree reader", func() error {
			reader.Reset(text)
			_, err := tree.Decode(reader, tree.DecodeOptions{})
			return err
		}},
		{"encoding-json any", func() error {
			var v any
			return json.Unmarshal(text, &v)
		}},
		{"jsontext tokens", func() error {
			reader.Reset(text)
			for d := jsontext.NewDecoder(reader); ; {
				if _, err := d.ReadToken(); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
			}
		}},
	}
	for _, d := range decoders {
		b.Run(d.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := d.decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeUsers reads records whose keys do not come in key order, under
// keys that no two of them share.
func BenchmarkDecodeUsers(b *testing.B) {
	text := []byte{'{'}
	for i := range largeRecords {
		text = fmt.Appendf(text, `"user%07d":{"name":"User Number %d","email":"user%d@example.org","age":%d,"city":"Springfield",`+
			`"country":"Neverland","score":%d,"active":%t,"joined":%d,"bio":"Likes trees, databases and long walks.",`+
			`"avatar":"https://example.org/a/%08x.png"},`,
			i, i, i*7919, i%90, i*104729, i%2 == 0, 1_600_000_000_000+int64(i), i*65537)
	}
	text[len(text)-1] = '}'
	reader := bytes.NewReader(text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		reader.Reset(text)
		if _, err := tree.Decode(reader, tree.DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodePatch(b *testing.B) {
	text := records(largeRecords)
	at := path(b, "/rooms/general/messages")
	reader := bytes.NewReader(text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		reader.Reset(text)
		if _, err := tree.DecodePatch(reader, at, tree.DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeUnsorted reads keys that do not come in key order.
func BenchmarkDecodeUnsorted(b *testing.B) {
	const keys = 100_000
	text := []byte{'{'}
	for i := range keys {
		text = fmt.Appendf(text, `"k%05d":%d,`, (i*7919)%keys, i)
	}
	text[len(text)-1] = '}'
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tree.DecodeBytes(text, tree.DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRecord(b *testing.B) { benchmarkAppend(b, []byte(record)) }
func BenchmarkAppendLarge(b *testing.B)  { benchmarkAppend(b, records(largeRecords)) }

func benchmarkAppend(b *testing.B, text []byte) {
	n := decode(b, string(text))
	for _, f := range []struct {
		name string
		form tree.Form
	}{{"plain", tree.Plain}, {"export", tree.Export}} {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			buf := make([]byte, 0, 2*len(text))
			for b.Loop() {
				buf = tree.AppendJSON(buf[:0], n, f.form)
			}
		})
	}
}

// BenchmarkEditLeaf replaces one leaf of a record, as a small write below a
// watched node does.
func BenchmarkEditLeaf(b *testing.B) {
	n := decode(b, record)
	p, leaf := path(b, "/likes"), decode(b, "18")
	b.ReportAllocs()
	for b.Loop() {
		e := tree.NewEditor(n)
		e.Set(p, leaf)
		if e.Node().Len() != n.Len() {
			b.Fatal("the edit changed the number of children")
		}
	}
}

func BenchmarkChild(b *testing.B) {
	large := decode(b, string(records(largeRecords)))
	array := []byte{'['}
	for i := range 10_000 {
		array = fmt.Appendf(array, "%d,", i)
	}
	array[len(array)-1] = ']'
	indexes := decode(b, string(array))
	b.Run("push key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			large.Child("-OHxQ2001234fVtR4mWn")
		}
	})
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			indexes.Child("6789")
		}
	})
}

func BenchmarkParsePath(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tree.ParsePath("/rooms/general/messages/-OHxQ2001234fVtR4mWn/likes"); err != nil {
			b.Fatal(err)
		}
	}
}
