package rest

import (
	"bytes"
	"io"
)

// A scriptWriter wraps JSON into a call of a JavaScript function. The comment in
// front keeps the answer from being read as anything but a script.
//
// Two characters that JSON allows in strings ended lines in older JavaScript;
// they are escaped.
type scriptWriter struct {
	w     io.Writer
	name  string
	begun bool
	held  []byte // the beginning of a character that may have to be escaped
}

var (
	lineSeparator      = []byte("\u2028")
	paragraphSeparator = []byte("\u2029")
	separatorStart     = lineSeparator[:2] // the same for both
)

func (s *scriptWriter) Write(p []byte) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	text := append(s.held, p...)
	// A character can be cut in two: keep its beginning for later.
	keep := 0
	for n := 1; n <= len(separatorStart); n++ {
		if bytes.HasSuffix(text, separatorStart[:n]) {
			keep = n
		}
	}
	s.held = bytes.Clone(text[len(text)-keep:])
	text = text[:len(text)-keep]
	text = bytes.ReplaceAll(text, lineSeparator, []byte(`\u2028`))
	text = bytes.ReplaceAll(text, paragraphSeparator, []byte(`\u2029`))
	_, err := s.w.Write(text)
	return len(p), err
}

func (s *scriptWriter) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	_, err := io.WriteString(s.w, "/**/"+s.name+"(")
	return err
}

// Close ends the call.
func (s *scriptWriter) Close() error {
	if err := s.begin(); err != nil {
		return err
	}
	_, err := s.w.Write(append(s.held, ");"...))
	return err
}
