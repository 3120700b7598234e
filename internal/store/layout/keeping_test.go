package layout

import (
	"bytes"
	"testing"
)

func FuzzKeeping(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 9, 'k', 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, row []byte) {
		k, err := DecodeKeeping(row)
		if err == nil && !bytes.Equal(k.AppendTo(nil), row) {
			t.Errorf("%x is decoded as %+v, which is encoded as %x", row, k, k.AppendTo(nil))
		}
		key := append(AppendSpace(nil, SpaceIndex, 7), unbuiltMark)
		key = append(key, row...)
		position, p, err := CutUnbuiltKey(7, key)
		if err == nil && !bytes.Equal(UnbuiltKey(7, position, DataKey(nil, 7, p)), key) {
			t.Errorf("%x is read as %d and %s", key, position, p)
		}
	})
}
