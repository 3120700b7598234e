package rows

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// The types of a row.
const (
	TypeNone    = "none" // there is no data
	TypeObject  = "object"
	TypeString  = "string"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
)

// maxCounted is how many children of a row are counted.
const maxCounted = 1000

// A Row is one child of a node.
type Row struct {
	Key string `json:"key"`
	Shown
	// Children is how many children an object has. More says that it has others that were
	// not counted.
	Children int  `json:"children,omitempty"`
	More     bool `json:"more,omitempty"`
}

// Text returns what a person sees of the row beside its key, on one line.
func (r Row) Text() string {
	switch {
	case r.Value != "" && r.Cut:
		return fmt.Sprintf("%s… (%d bytes)", r.Value, r.Bytes)
	case r.Value != "":
		return r.Value
	case r.More:
		return fmt.Sprintf("{…} over %d children", r.Children)
	}
	return fmt.Sprintf("{…} %d children", r.Children)
}

// Shown is what is shown of a node.
type Shown struct {
	Type string `json:"type"`
	// Value is the JSON text that GET prints: of a string perhaps only its beginning, of an
	// object all of it or nothing.
	Value string `json:"value,omitempty"`
	// Cut says that Value is only the beginning. Bytes is then how long the string is, in
	// UTF-8.
	Cut   bool `json:"cut,omitempty"`
	Bytes int  `json:"bytes,omitempty"`
	// Priority is JSON text, empty for none.
	Priority string `json:"priority,omitempty"`
}

// typeOf returns the type of a node.
func typeOf(kind tree.Kind) string {
	switch kind {
	case tree.Boolean:
		return TypeBoolean
	case tree.Integer, tree.Double:
		return TypeNumber
	case tree.String:
		return TypeString
	case tree.Object:
		return TypeObject
	}
	return TypeNone
}

// show returns what is shown of a node in memory, with at most cut characters of its text.
func show(n tree.Node, cut int) Shown {
	s := Shown{Type: typeOf(n.Kind()), Priority: priorityText(n.Priority())}
	switch n.Kind() {
	case tree.Null:
	case tree.Object:
		s.Value = whole(n, cut)
	default:
		s.Value, s.Cut = leafText(n.Leaf(), cut)
		if s.Cut {
			s.Bytes = len(n.Leaf().Text())
		}
	}
	return s
}

func priorityText(l tree.Leaf) string {
	if l.IsNull() {
		return ""
	}
	return string(tree.AppendLeaf(nil, l))
}

// whole returns the text of a node if it has at most cut characters, else nothing.
func whole(n tree.Node, cut int) string {
	text, _, fits := tree.AppendWithin(nil, n, tree.Plain, cut*utf8.UTFMax)
	if !fits || utf8.RuneCount(text) > cut {
		return ""
	}
	return string(text)
}

// leafText returns the JSON text of a leaf. Of a string, only its first characters: those
// that would exceed cut are left out, and with them the closing quote. However long the
// string is, no more of it is looked at. Numbers are short and never cut.
func leafText(l tree.Leaf, cut int) (text string, isCut bool) {
	if l.Kind() != tree.String {
		return string(tree.AppendLeaf(nil, l)), false
	}
	s := l.Text()
	part := s[:prefix(s, cut)]
	quoted := string(tree.AppendString(make([]byte, 0, len(part)+2), part))
	if len(part) == len(s) && utf8.RuneCountInString(quoted) <= cut {
		return quoted, false
	}
	return quoted[:escapedPrefix(quoted, cut)], true
}

// prefix returns how long the first characters of a text are, in bytes.
func prefix(s string, characters int) int {
	if len(s) <= characters {
		return len(s)
	}
	for i := range s {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(s)
}

// escapedPrefix is prefix for the text of a JSON string. It leaves out the closing quote, and
// divides no escape.
func escapedPrefix(quoted string, characters int) int {
	at := 0
	for at < len(quoted)-1 {
		_, size := utf8.DecodeRuneInString(quoted[at:])
		count := 1
		if quoted[at] == '\\' {
			size, count = 2, 2
			if quoted[at+1] == 'u' {
				size, count = 6, 6
			}
		}
		if characters -= count; characters < 0 {
			break
		}
		at += size
	}
	return at
}

// A walk reads rows of a node.
type walk struct {
	tree    store.Tree // which counts into cost
	path    tree.Path
	cut     int
	counted int
	cost    *store.Cost
}

func newWalk(t store.Tree, p tree.Path, cut, counted int) *walk {
	cost := &store.Cost{}
	return &walk{tree: t.Counting(cost), path: p, cut: cut, counted: counted, cost: cost}
}

// held returns the row of a child in memory.
func (w *walk) held(key string, n tree.Node) Row {
	r := Row{Key: key, Shown: show(n, w.cut), Children: n.Len()}
	if r.Children > w.counted {
		r.Children, r.More = w.counted, true
	}
	return r
}

// child returns the row of one child, of the type none if there is no such child.
func (w *walk) child(key string) (Row, error) {
	p := w.path.Child(key)
	reader := w.tree.Reader()
	l := reader.Locate(p)
	c, rows, err := reader.Open(l)
	switch {
	case err != nil:
		return Row{}, err
	case c != nil:
		defer c.Release()
		n, err := reader.Decode(l, c)
		if err != nil {
			return Row{}, err
		}
		return w.held(key, n.At(layout.Below(p, c.Depth))), nil
	case rows == nil:
		return Row{Key: key, Shown: Shown{Type: TypeNone}}, nil
	}
	r, err := w.split(rows, key, len(l.Key))
	return r, errors.Join(err, damage.Mark(rows.Close()))
}

// next returns the row of the child that a stepper is at, and moves the stepper past that
// child. The key of the parent has a number of bytes.
func (w *walk) next(rows *seek.Stepper, parent int) (Row, error) {
	end, err := layout.ChildEnd(rows.Key(), parent)
	if err != nil {
		return Row{}, damage.Mark(err)
	}
	key, _, err := layout.CutComponent(rows.Key()[parent:end])
	if err != nil {
		return Row{}, damage.Mark(err)
	}
	key = strings.Clone(key)
	if len(rows.Key()) > end {
		return w.split(rows, key, end)
	}
	text, err := rows.ValueAndErr()
	if err != nil {
		return Row{}, damage.Mark(err)
	}
	w.cost.Add(len(text))
	n, err := layout.DecodeChunk(text)
	if err != nil {
		return Row{}, damage.AtRow(rows.Key(), err)
	}
	r := w.held(key, n)
	rows.SkipChild(end)
	return r, nil
}

// split is next for a child of several rows, whose own key is the first end bytes of the
// current row's.
func (w *walk) split(rows *seek.Stepper, key string, end int) (Row, error) {
	r := Row{Key: key, Shown: Shown{Type: TypeObject}}
	child := bytes.Clone(rows.Key()[:end])
	if at := rows.Key(); len(at) == end+1 && at[end] == layout.PriorityMark {
		text, err := rows.ValueAndErr()
		if err != nil {
			return r, damage.Mark(err)
		}
		priority, err := seek.DecodePriority(at, text)
		if err != nil {
			return r, err
		}
		r.Priority = priorityText(priority)
		rows.Step()
	}
	least, err := w.count(rows, child, &r)
	if err != nil {
		return r, err
	}
	if r.More {
		rows.SeekGE(layout.SubtreeEnd(nil, child))
	}
	if err := rows.Error(); err != nil {
		return r, damage.Mark(err)
	}
	if least > w.cut*utf8.UTFMax || 2*r.Children > w.cut*utf8.UTFMax {
		return r, nil
	}
	r.Value, err = w.text(w.path.Child(key))
	return r, err
}

// count counts the children of a split child, up to a bound, and moves past those. It
// returns how long the text of the child is at least.
func (w *walk) count(rows *seek.Stepper, child []byte, r *Row) (least int, err error) {
	for rows.Valid() && layout.Belongs(rows.Key(), child) {
		if r.Children == w.counted {
			r.More = true
			break
		}
		if err := w.tree.Reader().Waiter.Left(r.Children); err != nil {
			return least, err
		}
		end, err := layout.ChildEnd(rows.Key(), len(child))
		if err != nil {
			return least, damage.Mark(err)
		}
		r.Children++
		if len(rows.Key()) == end && least <= w.cut*utf8.UTFMax {
			text, err := rows.ValueAndErr()
			if err != nil {
				return least, damage.Mark(err)
			}
			w.cost.Add(len(text))
			if len(text) > 0 && text[0] == 0 { // it prints as it is
				least += len(text)
			}
		}
		rows.SkipChild(end)
	}
	return least, nil
}

// errLong says that a text is longer than is shown.
var errLong = errors.New("the text is longer than is shown")

// text returns the text of the node at p if it has at most as many characters as are shown,
// else nothing.
func (w *walk) text(p tree.Path) (string, error) {
	text := &shortText{most: w.cut * utf8.UTFMax}
	err := w.tree.Print(text, p, tree.Plain)
	if errors.Is(err, errLong) || err == nil && utf8.RuneCount(text.text) > w.cut {
		return "", nil
	}
	return string(text.text), err
}

// A shortText is a writer that fails when more is written than is shown.
type shortText struct {
	text []byte
	most int
}

func (s *shortText) Write(p []byte) (int, error) {
	if len(s.text)+len(p) > s.most {
		return 0, errLong
	}
	s.text = append(s.text, p...)
	return len(p), nil
}
