package store_test

import (
	"bytes"
	"testing"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestNotes keeps a note, replaces it, deletes it, and finds it after the store was opened again.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{Replicated: true, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	number := uint64(0)
	keep := func(n layout.Note) {
		t.Helper()
		decoded, err := layout.DecodeNote(n.Encode())
		if err != nil {
			t.Fatal(err)
		}
		number++
		if err := store.CommitNote(s, decoded, store.Applied{Number: number}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name string, value []byte) {
		t.Helper()
		got, err := store.NoteOf(s, name)
		if err != nil || !bytes.Equal(got, value) || (got == nil) != (value == nil) {
			t.Errorf("the note %s is %q, %v; want %q", name, got, err, value)
		}
	}
	want("a", nil)
	keep(layout.Note{Name: "a", Value: []byte("1")})
	keep(layout.Note{Name: "a/b", Value: []byte{}})
	keep(layout.Note{Name: "a", Value: []byte("2")})
	want("a", []byte("2"))
	want("a/b", []byte{})
	if err := store.Flush(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(dir, store.Options{Replicated: true, BallastBytes: -1}); err != nil {
		t.Fatal(err)
	}
	want("a", []byte("2"))
	keep(layout.Note{Name: "a"})
	want("a", nil)
	want("a/b", []byte{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzNote reads any bytes as a note: an error, or a note that is written as the same bytes.
func FuzzNote(f *testing.F) {
	f.Add(layout.Note{Name: "a", Value: []byte("1")}.Encode())
	f.Add(layout.Note{Name: "a"}.Encode())
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x05a"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := layout.DecodeNote(b)
		if err != nil {
			return
		}
		again, err := layout.DecodeNote(n.Encode())
		if err != nil || again.Name != n.Name || !bytes.Equal(again.Value, n.Value) || (again.Value == nil) != (n.Value == nil) {
			t.Errorf("%q is written as %q, and that read as %+v, %v", b, n.Encode(), again, err)
		}
		if _, err := store.DecodeNaming(b); err == nil {
			t.Errorf("%q is a note and a naming", b)
		}
	})
}
