package sdkhash

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/livetree/livetree/internal/tree"
)

// ErrTooLarge says that a text is longer than its Writer takes.
var ErrTooLarge = errors.New("too large to be hashed")

// ErrNoRoom says that Writer.Charge has refused memory.
var ErrNoRoom = errors.New("there is no memory for hashing")

// errText says that a text is not as a store prints it.
var errText = errors.New("not the text of a node in export form")

// A Writer hashes a node whose text is written to it: in tree.Export form and
// without white space, with children in the order of keys, the priority of an object
// before them and that of a leaf behind it, as stores print it. An empty object is no
// data. The order of keys is not checked.
//
// It keeps of the text only its longest string, and what it needs of the children with
// priorities of the objects that are open.
type Writer struct {
	// Charge, if set, is told how many bytes the children with priorities take that are
	// kept. If it reports false, the text cannot be hashed.
	Charge func(bytes int64) bool
	kept   int64 // of them

	lexer  lexer
	hasher *hasher // nil when the node is complete, or after an error
	left   int64   // how many more bytes it takes
	err    error
	expect expectation
	levels []level // one for each open object
	root   pair
}

// An expectation is what may come next.
type expectation uint8

const (
	aValue expectation = iota
	aKeyOrEnd
	aKey
	aColon
	aCommaOrEnd
	noMore
)

// A level is an object that is open, or a leaf in its place: {".value":…}.
type level struct {
	role     role
	key      []byte // of the child that is read
	priority clientLeaf
	leaf     clientLeaf
	isLeaf   bool
	members  int
	kept     int64 // bytes of children with priorities
}

// A role is what the value of a member is to its object.
type role uint8

const (
	child role = iota
	ownValue
	ownPriority
)

// NewWriter returns a Writer that takes up to maxBytes bytes.
func NewWriter(maxBytes int64) *Writer {
	return &Writer{hasher: hashers.Get().(*hasher), left: maxBytes}
}

// Write takes the next piece of the text. After an error, all further calls have the
// same one.
func (w *Writer) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 && w.err == nil {
		w.err = ErrTooLarge
	}
	if w.err == nil {
		w.err = w.read(p)
	}
	if w.err != nil {
		w.hasher, w.left = nil, 0
		return 0, w.err
	}
	return len(p), nil
}

// Sums returns the hashes of the node, when all of its text was written: with the right
// numbers, and with those of the JavaScript SDK. Mostly they are the same.
func (w *Writer) Sums() (right, js string, err error) {
	if w.err == nil && len(w.levels) == 0 && w.lexer.state == inWord {
		w.lexer.state = betweenTokens
		w.err = w.take(token{wordToken, w.lexer.token})
	}
	if w.err == nil && (w.expect != noMore || w.lexer.state != betweenTokens) {
		w.err = fmt.Errorf("%w: it is not complete", errText)
	}
	if w.err != nil {
		return "", "", w.err
	}
	right, js = w.root.sums()
	return right, js, nil
}

func (w *Writer) read(p []byte) error {
	for len(p) > 0 {
		if w.expect == noMore {
			return fmt.Errorf("%w: more behind its end", errText)
		}
		t, rest, err := w.lexer.next(p)
		if err != nil {
			return err
		}
		if t.kind == 0 {
			return nil
		}
		if err := w.take(t); err != nil {
			return err
		}
		p = rest
	}
	return nil
}

// take takes a token.
func (w *Writer) take(t token) error {
	switch {
	case w.expect == aValue && t.kind == '{':
		return w.open()
	case w.expect == aValue && t.kind == stringToken:
		return w.leaf(clientLeaf{kind: tree.String, text: borrow(t.text)})
	case w.expect == aValue && t.kind == wordToken:
		l, err := readWord(t.text)
		if err != nil {
			return err
		}
		return w.leaf(l)
	case (w.expect == aKey || w.expect == aKeyOrEnd) && t.kind == stringToken:
		w.expect = aColon
		return w.member(t.text)
	case w.expect == aColon && t.kind == ':':
		w.expect = aValue
	case w.expect == aCommaOrEnd && t.kind == ',':
		w.expect = aKey
	case (w.expect == aCommaOrEnd || w.expect == aKeyOrEnd) && t.kind == '}':
		return w.shut()
	default:
		return fmt.Errorf("%w: a %q in the wrong place", errText, t.kind)
	}
	return nil
}

func (w *Writer) top() *level { return &w.levels[len(w.levels)-1] }

// open begins an object.
func (w *Writer) open() error {
	if len(w.levels) > 0 && w.top().role != child {
		return fmt.Errorf("%w: an object as .value or .priority", errText)
	}
	w.hasher.begin()
	if n := len(w.levels); n < cap(w.levels) {
		w.levels = w.levels[:n+1]
		w.levels[n] = level{key: w.levels[n].key}
	} else {
		w.levels = append(w.levels, level{})
	}
	w.expect = aKeyOrEnd
	return nil
}

// member begins the member of the innermost object that is called key.
func (w *Writer) member(key []byte) error {
	o := w.top()
	first := o.members == 0
	o.members++
	switch {
	case string(key) == ".value" && first:
		o.role, o.isLeaf = ownValue, true
	case string(key) == ".priority" && (first || o.isLeaf && o.members == 2):
		o.role = ownPriority
	case o.isLeaf || len(key) == 0 || key[0] == '.':
		return fmt.Errorf("%w: the key %q in the wrong place", errText, key)
	case len(w.levels) > tree.MaxDepth: // a leaf with a priority may be so deep, no child
		return tree.ErrTooDeep
	default:
		o.role, o.key = child, append(o.key[:0], key...)
	}
	return nil
}

// leaf takes a value that is no object.
func (w *Writer) leaf(l clientLeaf) error {
	if len(w.levels) == 0 {
		w.finish(w.hasher.leaf(l, clientLeaf{}))
		return nil
	}
	w.expect = aCommaOrEnd
	o := w.top()
	if o.role == child {
		d := w.hasher.leaf(l, clientLeaf{})
		w.hasher.top().add(borrow(o.key), clientLeaf{}, &d)
		return nil
	}
	l.text = strings.Clone(l.text)
	if o.role == ownValue {
		o.leaf = l
		return nil
	}
	if l.kind == tree.Boolean {
		return fmt.Errorf("%w: a boolean as .priority", errText)
	}
	o.priority = l
	if !o.isLeaf {
		w.hasher.top().prioritize(l)
	}
	return nil
}

// rankedBytes is about what a child with a priority takes beside its texts.
const rankedBytes = 256

// keep counts a child with a priority.
func (w *Writer) keep(o *level, texts int) error {
	bytes := int64(rankedBytes + texts)
	o.kept += bytes
	if w.kept += bytes; w.Charge != nil && !w.Charge(w.kept) {
		return ErrNoRoom
	}
	return nil
}

// shut ends the innermost object.
func (w *Writer) shut() error {
	o := w.top()
	d := w.hasher.end()
	if o.isLeaf {
		d = w.hasher.leaf(o.leaf, o.priority)
	}
	w.kept -= o.kept
	w.levels = w.levels[:len(w.levels)-1]
	if len(w.levels) == 0 {
		w.finish(d)
		return nil
	}
	w.expect = aCommaOrEnd
	key := borrow(w.top().key)
	if o.priority.kind != tree.Null {
		if err := w.keep(w.top(), len(key)+len(o.priority.text)); err != nil {
			return err
		}
		key = strings.Clone(key) // it is kept
	}
	w.hasher.top().add(key, o.priority, &d)
	return nil
}

func (w *Writer) finish(d pair) {
	w.root, w.expect = d, noMore
	w.hasher.free()
	w.hasher = nil
}

// readWord reads a number, true, false or null.
func readWord(text []byte) (clientLeaf, error) {
	switch string(text) {
	case "null":
		return clientLeaf{}, nil
	case "true", "false":
		return booleanLeaf(text[0] == 't'), nil
	}
	number, ok := smallInteger(text)
	if !ok {
		var err error
		if number, err = strconv.ParseFloat(borrow(text), 64); err != nil || math.IsNaN(number) {
			return clientLeaf{}, fmt.Errorf("%w: the number %.40q", errText, text)
		}
	}
	return clientLeaf{kind: tree.Double, number: number + 0}, nil // + 0: there is no -0
}

// smallInteger reads an integer of up to 15 digits, which any double holds.
func smallInteger(text []byte) (float64, bool) {
	digits := text
	if len(text) > 1 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > 15 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		v = -v
	}
	return float64(v), true
}

// borrow returns b as a string, without a copy: it holds until b changes.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
