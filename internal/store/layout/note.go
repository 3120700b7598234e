package layout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxNoteName and MaxNote are how long the name of a note, and a note, may be.
	MaxNoteName = 200
	MaxNote     = 256 << 10
)

// A Note is a named row of a cluster.
type Note struct {
	Name string
	// Value is what it holds. nil deletes the note; an empty one that is not nil is kept.
	Value []byte
}

// noteMark begins a note where a naming has its number and the next one: no database has the number 0.
var noteMark = make([]byte, 8)

// IsNote says whether the bytes of a control record are a note.
func IsNote(b []byte) bool { return bytes.HasPrefix(b, noteMark) }

// Encode returns the bytes of a note.
func (n Note) Encode() []byte {
	b := binary.AppendUvarint(bytes.Clone(noteMark), uint64(len(n.Name)))
	b = append(b, n.Name...)
	if n.Value == nil {
		return append(b, 0)
	}
	return append(append(b, 1), n.Value...)
}

// DecodeNote reads what Encode has written.
func DecodeNote(b []byte) (Note, error) {
	if !IsNote(b) {
		return Note{}, errors.New("this is no note of a cluster")
	}
	b = b[len(noteMark):]
	size, head := binary.Uvarint(b)
	if head <= 0 || size > MaxNoteName || uint64(len(b)-head) < size+1 {
		return Note{}, errors.New("a note of a cluster is cut short")
	}
	n := Note{Name: string(b[head : head+int(size)])}
	rest := b[head+int(size):]
	if rest[0] == 1 {
		n.Value = append([]byte{}, rest[1:]...)
	}
	if rest[0] > 1 || rest[0] == 0 && len(rest) > 1 {
		return Note{}, errors.New("a note of a cluster is neither kept nor deleted")
	}
	return n, n.Check()
}

// Check refuses what no store takes.
func (n Note) Check() error {
	if n.Name == "" || len(n.Name) > MaxNoteName {
		return fmt.Errorf("the name of a note has %d bytes, want 1 to %d", len(n.Name), MaxNoteName)
	}
	if len(n.Value) > MaxNote {
		return fmt.Errorf("the note %s has %d bytes, more than %d", n.Name, len(n.Value), MaxNote)
	}
	return nil
}
