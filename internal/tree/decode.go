package tree

import (
	"errors"
	"io"
	"strings"
)

// MaxStringBytes is the longest string, in bytes of UTF-8.
const MaxStringBytes = 10 << 20

// DecodeOptions say what to accept. The zero value is right for a body that is
// written at the root.
type DecodeOptions struct {
	// Depth is the number of keys above the decoded node; they count against
	// MaxDepth.
	Depth int
	// Charge, if set, is told how many more bytes of memory the decoded form
	// takes, before it grows much further. Its error ends the decoding.
	Charge func(bytes int64) error
	// Bytes is how long the text will be, as far as memory may be taken for it before it was read; 0 if that is not known. The text may
	// be shorter or longer.
	Bytes int64
}

// Decode reads one JSON text strictly and returns its node, in which the
// constructs .value, .priority and .sv have taken effect; server values are
// placeholders until Resolve. An error about the text is a *DecodeError; errors
// of r and of opts.Charge are returned as they are.
func Decode(r io.Reader, opts DecodeOptions) (Node, error) {
	d := newDecoder(r, nil, opts)
	defer d.free()
	return d.document()
}

// DecodeBytes is Decode for a text that is in memory. It keeps nothing of text.
func DecodeBytes(text []byte, opts DecodeOptions) (Node, error) {
	d := newDecoder(nil, text, opts)
	d.length = int64(len(text))
	defer d.free()
	return d.document()
}

// DecodeClaims is DecodeBytes for a text whose keys are not child names: the
// claims of a token, which rules look at and nobody stores. A key may be any
// string of up to MaxKeyBytes bytes, such as https://example.org/role, and none
// has a meaning, not even .value.
func DecodeClaims(text []byte) (Node, error) {
	d := newDecoder(nil, text, DecodeOptions{})
	defer d.free()
	d.claims = true
	return d.document()
}

// A decoder builds one slab.
type decoder struct {
	scanner
	opts    DecodeOptions
	claims  bool // the keys are not child names
	slab    *slab
	stack   []entry // children of the objects that are still open
	beside  int64   // bytes of memory that are taken beside slab and stack
	charged int64
	// interned remembers where the text of recent keys is: records repeat theirs.
	interned [64]cell
	shapes   [shapeLevels]shape
	root     shape   // of the last text that was an object, see rootShape
	rootText []byte  // its keys
	order    []uint8 // of the children of an object that is being closed
	own      []byte  // where a text is read to at first
}

// An entry is a child of an object that is still open.
type entry struct {
	cell
	at position
}

// document reads a text that is one value.
func (d *decoder) document() (Node, error) {
	c, err := d.peek()
	if err != nil {
		return Node{}, err
	}
	if c == 0 {
		return Node{}, d.fail(ErrNoData, "no data supplied")
	}
	root, err := d.value(d.opts.Depth)
	if err != nil {
		return Node{}, err
	}
	if err := d.end(); err != nil {
		return Node{}, err
	}
	return d.node(root), d.charge()
}

// end reads up to the end of the text, where only white space may be.
func (d *decoder) end() error {
	c, err := d.peek()
	if err == nil && c != 0 {
		err = d.unexpected(c, "the end of the data")
	}
	return err
}

// node gives a finished cell its place in the slab.
func (d *decoder) node(c cell) Node {
	if c.kind == Null {
		return Node{}
	}
	d.slab.cells = append(d.slab.cells, c)
	return Node{d.slab, uint32(len(d.slab.cells) - 1)}
}

// value reads the value of a node that is depth keys below the root.
func (d *decoder) value(depth int) (cell, error) {
	c, err := d.peek()
	if err != nil {
		return cell{}, err
	}
	switch c {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	default:
		return d.primitive(c)
	}
}

// primitive reads a value that begins with c and is neither object nor array.
func (d *decoder) primitive(c byte) (cell, error) {
	switch {
	case c == '"':
		start := len(d.slab.text)
		text, err := d.appendString(d.slab.text, MaxStringBytes, "a string")
		d.slab.text = text
		if err != nil {
			return cell{}, err
		}
		return cell{kind: String, bits: pair(start, len(text)-start)}, d.charge()
	case c == 't':
		return cell{kind: Boolean, bits: 1}, d.word("true")
	case c == 'f':
		return cell{kind: Boolean}, d.word("false")
	case c == 'n':
		return cell{}, d.word("null")
	case c == '-' || '0' <= c && c <= '9':
		l, err := d.scanNumber()
		return cell{kind: l.kind, bits: l.bits}, err
	}
	return cell{}, d.unexpected(c, "a value")
}

// array reads an array as the object with the keys 0, 1, 2, …
func (d *decoder) array(depth int) (cell, error) {
	d.pos++ // the bracket
	base := len(d.stack)
	for index := uint32(0); ; index++ {
		c, err := d.peek()
		if err != nil {
			return cell{}, err
		}
		if index == 0 && c == ']' {
			break
		}
		if depth+1 > MaxDepth {
			return cell{}, d.fail(ErrTooDeep, "%v", ErrTooDeep)
		}
		child, err := d.value(depth + 1)
		if err != nil {
			return cell{}, err
		}
		if child.kind != Null {
			child.key, child.keyLen = index, indexKey
			d.stack = append(grow(d.stack, 1), entry{cell: child})
			if err := d.charge(); err != nil {
				return cell{}, err
			}
		}
		if c, err = d.peek(); err != nil {
			return cell{}, err
		}
		if c == ']' {
			break
		}
		if err := d.expect(',', `"," or "]"`); err != nil {
			return cell{}, err
		}
	}
	d.pos++
	return d.closeObject(base, nil, cell{}), d.charge()
}

// object reads an object: children, a leaf with a priority, or a server value.
func (d *decoder) object(depth int) (cell, error) {
	at := d.position()
	d.pos++ // the brace
	if cap(d.slab.cells) <= firstCells && len(d.slab.cells) == 0 && len(d.stack) == 0 {
		d.makeRoom()
	}
	o := openObject{base: len(d.stack), depth: depth, at: at, shape: d.shapeAt(depth)}
	o.follows = o.shape != nil && len(o.shape.keys) > 0
	for first := true; ; first = false {
		c, err := d.peek()
		if err != nil {
			return cell{}, err
		}
		if first && c == '}' {
			break
		}
		if o.follows {
			if d.follow(&o) {
				break
			}
			if c, err = d.peek(); err != nil {
				return cell{}, err
			}
		}
		if err := d.member(&o, c); err != nil {
			return cell{}, err
		}
		if c, err = d.peek(); err != nil {
			return cell{}, err
		}
		if c == '}' {
			break
		}
		if err := d.expect(',', `"," or "}"`); err != nil {
			return cell{}, err
		}
	}
	d.pos++
	return d.finish(&o)
}

// An openObject is an object whose members are being read.
type openObject struct {
	base    int // of its children on the stack
	depth   int
	at      position
	ordered int // how many of the first children came in the order of keys
	members int
	escaped bool // some key has escapes in it

	shape   *shape // that it may have, nil if none is known
	place   int    // in the shape, of the key that is expected next
	follows bool   // the children have the keys of the shape so far, and ordered is not counted

	value    *cell // of .value
	priority *cell // of .priority
	sv       *cell // of .sv
}

// member reads one key and its value; c is the next byte.
func (d *decoder) member(o *openObject, c byte) error {
	if c != '"' {
		return d.unexpected(c, "a key in double quotes")
	}
	at := d.position()
	o.members++
	key, ok := d.expected(o)
	if !ok {
		var construct string
		var err error
		if key, construct, err = d.readKey(o, at); err != nil {
			return err
		}
		if construct != "" {
			return d.construct(o, construct, at)
		}
		o.stray()
	}
	if err := d.expect(':', `":"`); err != nil {
		return err
	}
	if o.depth+1 > MaxDepth {
		return d.failAt(at, ErrTooDeep, "%v", ErrTooDeep)
	}
	value, err := d.value(o.depth + 1)
	if err != nil {
		return err
	}
	value.key, value.keyLen = key.key, key.keyLen
	return d.push(o, entry{value, at})
}

// readKey reads a key of an object, which is at a position: that of a child, or the
// name of a construct.
func (d *decoder) readKey(o *openObject, at position) (key cell, construct string, err error) {
	begin, start := d.offset(), len(d.slab.text)
	text, err := d.appendString(d.slab.text, MaxKeyBytes, "a key")
	d.slab.text = text
	if err != nil {
		if errors.Is(err, ErrTooLarge) {
			err = d.failAt(at, ErrInvalidKey, "%v: more than %d bytes", ErrInvalidKey, MaxKeyBytes)
		}
		return cell{}, "", err
	}
	if len(text) > start && text[start] == '.' && !d.claims {
		construct = string(text[start:])
		d.slab.text = text[:start]
		return cell{}, construct, nil
	}
	if d.offset()-begin > int64(len(text)-start+len(`""`)) {
		o.escaped = true
	}
	key, err = d.key(start, at)
	return key, "", err
}

// key checks the key whose text starts at start in the slab, and returns a cell
// that refers to it. The text is dropped when it is there already.
func (d *decoder) key(start int, at position) (cell, error) {
	text := d.slab.text[start:]
	key := d.slab.slice(uint32(start), len(text))
	if index, ok := ArrayIndex(key); ok {
		d.slab.text = d.slab.text[:start]
		return cell{key: uint32(index), keyLen: indexKey}, nil
	}
	slot := &d.interned[keyHash(text)%uint32(len(d.interned))]
	if int(slot.keyLen) == len(text) && slot.keyLen > 0 && d.slab.key(*slot) == key {
		d.slab.text = d.slab.text[:start]
		return *slot, nil
	}
	if !d.claims {
		if err := CheckKey(key); err != nil {
			problem := strings.TrimPrefix(err.Error(), ErrInvalidKey.Error()+": ")
			return cell{}, d.failAt(at, ErrInvalidKey, "%v: %s", ErrInvalidKey, problem)
		}
	}
	*slot = cell{key: uint32(start), keyLen: uint16(len(text))}
	return *slot, nil
}

// keyHash spreads keys over the interned slots; a clash costs only a copy.
func keyHash(key []byte) uint32 {
	if len(key) == 0 {
		return 0
	}
	return uint32(len(key))*31 ^ uint32(key[0]) ^ uint32(key[len(key)-1])*7 ^ uint32(key[len(key)/2])*13
}

// push adds a child. Values that are no data are kept until the object closes,
// so that a repeated key is noticed.
func (d *decoder) push(o *openObject, e entry) error {
	if !o.follows && o.ordered == len(d.stack)-o.base {
		order := -1
		if o.ordered > 0 {
			order = d.slab.compareCells(d.stack[len(d.stack)-1].cell, e.cell)
		}
		if order == 0 {
			return d.repeated(e)
		}
		if order < 0 {
			o.ordered++
		}
	}
	d.stack = append(growAhead(&d.scanner, d.stack, 1), e)
	return d.charge()
}

func (d *decoder) repeated(e entry) error {
	return d.failAt(e.at, ErrValue, "the key %q is repeated", d.slab.key(e.cell))
}

// finish turns the members of an object into its cell.
func (d *decoder) finish(o *openObject) (cell, error) {
	switch {
	case o.sv != nil:
		if o.members > 1 {
			return cell{}, d.failAt(o.at, ErrValue, ".sv must be the only key of its object")
		}
		return *o.sv, nil
	case o.value != nil:
		if len(d.stack) > o.base {
			return cell{}, d.failAt(o.at, ErrValue, ".value cannot stand beside other keys than .priority")
		}
		return d.withPriority(*o.value, o.priority), d.charge()
	}
	order, err := d.arrange(o)
	if err != nil {
		return cell{}, err
	}
	var priority cell
	if o.priority != nil {
		priority = *o.priority
	}
	return d.closeObject(o.base, order, priority), d.charge()
}

// closeObject moves the children above base from the stack to the slab, in the
// order in which they are, or in that of their places if there are some.
func (d *decoder) closeObject(base int, order []uint8, priority cell) cell {
	children := d.stack[base:]
	cells := growAhead(&d.scanner, d.slab.cells, len(children)+1)
	first := len(cells)
	if priority.kind != Null {
		cells = append(cells, priority)
	}
	start := len(cells)
	for _, place := range order {
		cells = appendData(cells, children[place].cell)
	}
	if len(order) == 0 {
		for _, e := range children {
			cells = appendData(cells, e.cell)
		}
	}
	d.stack = d.stack[:base]
	if len(cells) == start {
		return cell{}
	}
	d.slab.cells = cells
	return cell{kind: Object, priority: priority.kind != Null, bits: pair(first, len(cells)-start)}
}

// appendData appends a cell unless it is no data.
func appendData(cells []cell, c cell) []cell {
	if c.kind == Null {
		return cells
	}
	return append(cells, c)
}
