package client

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/tree"
)

// A Piece is a part of a JSON text and where it belongs.
type Piece struct {
	// Path is keys joined by slashes, "" for the whole text. It may end in
	// .priority.
	Path string
	// JSON is the text, valid until the next piece.
	JSON []byte
	// Later says that the piece must be written behind all that came before: a
	// priority needs a node that can carry it.
	Later bool
}

// A Problem is what is wrong at one place of a text.
type Problem struct {
	Line   int64  `json:"line"`
	Column int64  `json:"column"`
	Text   string `json:"text"`
}

func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text) }

// A Splitter cuts a JSON text of any size into pieces, in one pass, in memory that
// depends on the size of a piece and the longest string alone. Numbers and strings
// are passed on as they are spelled.
type Splitter struct {
	// MaxBytes is the size of a piece; only a leaf can be larger.
	MaxBytes int
	// Leaves asks for one piece for each leaf. Otherwise a piece is as large a
	// subtree as fits.
	Leaves bool
	// Depth is the number of keys above the text.
	Depth int
	// Problem is told what is wrong with keys and nodes. Splitting goes on.
	Problem func(Problem)
	// Emit is given the pieces. Its error ends the splitting.
	Emit func(Piece) error

	text    *text
	decoder *jsontext.Decoder
	// open are the objects and arrays around the place that is read. Those
	// before whole were split; buf holds the text of the others so far.
	open  []*container
	whole int
	buf   []byte
	stats Stats
	seed  maphash.Seed
}

// Stats are what a splitter has seen.
type Stats struct {
	Bytes    int64 `json:"bytes"`    // of text
	Depth    int   `json:"depth"`    // keys above the deepest leaf
	Leaves   int64 `json:"leaves"`   // with data
	Problems int64 `json:"problems"` // that were told
}

// A container is an object or an array that is being read.
type container struct {
	key     string
	isArray bool
	count   int // members so far
	start   int // of its text in buf
	members []member
	// wraps says that it is not an object but a leaf with its priority, or a
	// server value.
	wraps    bool
	children bool   // it has members that are not dotted
	priority []byte // of one that was split
	// few are its first keys, seen the hashes of the others.
	few  []string
	seen map[uint64]struct{}
}

// A member is a complete child of a container, in buf.
type member struct {
	key        string
	start, end int
}

const (
	// maxFew is the number of keys that are compared one by one.
	maxFew = 16
	// maxSeen bounds the keys of one object among which repetitions are found.
	maxSeen = 1 << 20
)

// Split reads a text to its end. An error about the text is a DataError that
// begins with its line and column.
func (s *Splitter) Split(r io.Reader) (Stats, error) {
	s.text = newText(r)
	s.decoder = jsontext.NewDecoder(s.text, jsontext.AllowDuplicateNames(true))
	s.seed = maphash.MakeSeed()
	for first := true; first || len(s.open) > 0; first = false {
		if err := s.step(); err != nil {
			return s.stats, s.explain(err)
		}
		s.stats.Bytes = s.decoder.InputOffset()
		s.text.pass(s.stats.Bytes)
	}
	if _, err := s.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			line, column := s.text.position(s.stats.Bytes)
			err = badData("%d:%d: something follows the JSON text", line, column)
		}
		return s.stats, s.explain(err)
	}
	return s.stats, nil
}

// An emitError is one of Emit.
type emitError struct{ error }

func (s *Splitter) explain(err error) error {
	if e, ok := errors.AsType[emitError](err); ok {
		return e.error
	}
	return s.text.syntaxError(err)
}

// step reads one member, or the end of a container.
func (s *Splitter) step() error {
	key, err := s.name()
	if err != nil {
		return err
	}
	switch kind := s.decoder.PeekKind(); kind {
	case '{', '[':
		return s.begin(key, kind == '[')
	case '}', ']':
		return s.end()
	}
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return err
	}
	s.checkLeaf(key, raw)
	return s.leaf(key, raw)
}

// top returns the innermost container, nil outside of all.
func (s *Splitter) top() *container {
	if len(s.open) == 0 {
		return nil
	}
	return s.open[len(s.open)-1]
}

// name reads the key of the next member, if there is one, and makes room for it.
func (s *Splitter) name() (string, error) {
	c := s.top()
	if c == nil {
		return "", nil
	}
	kind := s.decoder.PeekKind()
	if kind == '}' || kind == ']' || kind == 0 {
		return "", nil // what follows is read by the caller, or its error
	}
	key := strconv.Itoa(c.count)
	if !c.isArray {
		raw, err := s.decoder.ReadValue()
		if err != nil {
			return "", err
		}
		if key, err = unquote(raw); err != nil {
			return "", err
		}
		s.checkKey(c, key, len(raw))
	} else {
		s.checkDepth(0)
	}
	c.count++
	if dotted := !c.isArray && strings.HasPrefix(key, "."); dotted {
		c.wraps = c.wraps || key == ".value" || key == ".sv"
	} else {
		c.children = true
		if s.Leaves && !c.wraps && len(s.open) > s.whole {
			if err := s.split(); err != nil {
				return "", err
			}
		}
	}
	if len(s.open) > s.whole { // its text is kept together
		if c.count > 1 {
			s.buf = append(s.buf, ',')
		}
		if !c.isArray {
			s.buf = append(tree.AppendString(s.buf, key), ':')
		}
	}
	return key, nil
}

func unquote(raw jsontext.Value) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

// begin reads the start of a container.
func (s *Splitter) begin(key string, isArray bool) error {
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	if parent := s.top(); parent != nil && !parent.isArray && strings.HasPrefix(key, ".") {
		s.report(1, "%s must be a leaf%s", key, increments(key))
	}
	s.open = append(s.open, &container{key: key, isArray: isArray, start: len(s.buf)})
	brace := byte('{')
	if isArray {
		brace = '['
	}
	s.buf = append(s.buf, brace)
	return nil
}

// increments says why a server value that is not a string is refused: an import
// that goes on after an interruption could add twice.
func increments(key string) string {
	if key == ".sv" {
		return `: only "timestamp" can be imported, because an increment could be applied twice`
	}
	return ""
}

// end reads the end of a container.
func (s *Splitter) end() error {
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	c := s.top()
	if s.Leaves && len(s.open) > s.whole && !c.wraps {
		// It has no children, and as one of them does not name any leaf, but
		// perhaps a priority.
		if err := s.split(); err != nil {
			return err
		}
	}
	if len(s.open) <= s.whole {
		return s.endSplit(c)
	}
	s.open = s.open[:len(s.open)-1]
	brace := byte('}')
	if c.isArray {
		brace = ']'
	}
	s.buf = append(s.buf, brace)
	return s.complete(c.key, c.start)
}

// endSplit ends a container whose children are written by themselves.
func (s *Splitter) endSplit(c *container) error {
	path := s.path(len(s.open))
	s.open = s.open[:len(s.open)-1]
	s.whole = min(s.whole, len(s.open))
	if c.priority == nil {
		return nil
	}
	return s.emit(Piece{Path: join(path, ".priority"), JSON: c.priority, Later: true})
}

// leaf takes a leaf.
func (s *Splitter) leaf(key string, raw []byte) error {
	start := len(s.buf)
	s.buf = append(s.buf, raw...)
	return s.complete(key, start)
}

// complete takes a child whose text is in buf from start on.
func (s *Splitter) complete(key string, start int) error {
	if len(s.open) <= s.whole { // its parent was split, or there is none
		piece := Piece{Path: join(s.path(len(s.open)), key), JSON: s.buf[start:]}
		isPriority := key == ".priority" && len(s.open) > 0 && !s.top().isArray
		if isPriority {
			s.top().priority = bytes.Clone(piece.JSON)
		}
		s.buf = s.buf[:0]
		if isPriority || !s.Leaves && len(s.open) > 0 && string(piece.JSON) == "null" {
			return nil
		}
		return s.emit(piece)
	}
	c := s.top()
	c.members = append(c.members, member{key, start, len(s.buf)})
	for len(s.buf) > s.MaxBytes && len(s.open) > s.whole && !s.open[s.whole].wraps {
		if err := s.split(); err != nil {
			return err
		}
	}
	if len(s.buf) > maxValue {
		return errLongValue
	}
	return nil
}

// split makes the outermost container that is whole one that is written child by
// child.
func (s *Splitter) split() error {
	c := s.open[s.whole]
	path := s.path(s.whole + 1)
	for _, m := range c.members {
		text := s.buf[m.start:m.end]
		switch {
		case m.key == ".priority" && !c.isArray:
			c.priority = bytes.Clone(text)
		case !s.Leaves && string(text) == "null":
		default:
			if err := s.emit(Piece{Path: join(path, m.key), JSON: text}); err != nil {
				return err
			}
		}
	}
	c.members = nil
	s.whole++
	shift := len(s.buf)
	if s.whole < len(s.open) {
		shift = s.open[s.whole].start
	}
	s.buf = append(s.buf[:0], s.buf[shift:]...)
	for _, inner := range s.open[s.whole:] {
		inner.start -= shift
		for i := range inner.members {
			inner.members[i].start -= shift
			inner.members[i].end -= shift
		}
	}
	return nil
}

func (s *Splitter) emit(p Piece) error {
	if err := s.Emit(p); err != nil {
		return emitError{err}
	}
	return nil
}

// path returns the path of the innermost of the first n open containers.
func (s *Splitter) path(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		if i > 1 {
			b.WriteByte('/')
		}
		b.WriteString(s.open[i].key)
	}
	return b.String()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "/" + key
}
