package rest

import "io"

// content is the text of an answer: a printer of the store, or a text at hand.
type content interface {
	// Size returns the length in bytes if it is known.
	Size() (bytes int, known bool)
	PrintTo(w io.Writer) error
	Close() error
}

// A text is content in memory.
type text []byte

func (t text) Size() (int, bool) { return len(t), true }

func (t text) PrintTo(w io.Writer) error {
	_, err := w.Write(t)
	return err
}

func (t text) Close() error { return nil }

var nullText = text("null")
