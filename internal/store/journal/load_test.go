package journal

import (
	"bytes"
	"testing"
)

// FuzzMark reads any bytes as what a holder has noted of a database: an error, or a mark that is
// stored as it was.
func FuzzMark(f *testing.F) {
	f.Add(mark{position: 7, note: []byte("note"), name: "shop"}.appendTo(nil))
	f.Add(mark{}.appendTo(nil))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x07\xffshort"))
	f.Fuzz(func(t *testing.T, row []byte) {
		m, err := decodeMark([]byte("key"), row)
		if err == nil && !bytes.Equal(m.appendTo(nil), row) {
			t.Errorf("%x is read as %+v", row, m)
		}
	})
}
