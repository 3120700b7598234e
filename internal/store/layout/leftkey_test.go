package layout

import (
	"bytes"
	"strings"
	"testing"
)

func TestLeftKey(t *testing.T) {
	name := "-" + strings.Repeat("x", ConnectionBytes-1)
	key := LeftKey(3, name, 258)
	if want := "\x04\x00\x00\x00\x03\xff" + name + "\x00\x00\x00\x00\x00\x00\x01\x02"; string(key) != want {
		t.Errorf("LeftKey = %q, want %q", key, want)
	}
	if connection, number, ok := CutLeftKey(key); connection != name || number != 258 || !ok || !IsLeftKey(key) {
		t.Errorf("CutLeftKey = %q, %d, %v", connection, number, ok)
	}
	from, to := LeftRange(3)
	if bytes.Compare(from, LeftKey(3, strings.Repeat("\x00", ConnectionBytes), 0)) > 0 || bytes.Compare(key, to) >= 0 {
		t.Errorf("the key is not in the range from %q to %q", from, to)
	}
	// A reader of settings, of whatever version, ends before the rows.
	if end := SubtreeEnd(nil, SettingKey(3, "")); !bytes.Equal(end, from) {
		t.Errorf("the settings end at %q, what is left begins at %q", end, from)
	}
	for _, other := range [][]byte{nil, key[:len(key)-1], append(bytes.Clone(key), 0), SettingKey(3, "rules"), LogKey(nil, 3, 1), from} {
		if _, _, ok := CutLeftKey(other); ok {
			t.Errorf("CutLeftKey takes %q for a key of what is left", other)
		}
	}
	if IsLeftKey(SettingKey(3, "rules")) || !IsLeftKey(from) {
		t.Error("IsLeftKey takes a setting for what is left, or the other way round")
	}
}
