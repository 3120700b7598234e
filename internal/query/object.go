package query

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// The members of a query object, as the protocol of the SDKs spells them.
const (
	objectIndex          = "i"
	objectLimit          = "l"
	objectViewFrom       = "vf"
	objectStart          = "sp"
	objectStartKey       = "sn"
	objectStartInclusive = "sin"
	objectEnd            = "ep"
	objectEndKey         = "en"
	objectEndInclusive   = "ein"
)

// maxKeyName is what the Android SDK sends for maxName.
const maxKeyName = "[MAX_KEY]"

// keyIndex is the spelling of the order by key in a query object.
const keyIndex = ".key"

// ParseObject reads a query from the object that SDKs send in their protocol. Without
// an order it is the order by priority. All says that the object selects every child:
// it has no bound and no limit. Errors are Invalid faults.
func ParseObject(text []byte) (q Query, all bool, err error) {
	o, err := readObject(text)
	if err != nil {
		return Query{}, false, err
	}
	if q.Order, err = o.order(); err != nil {
		return Query{}, false, err
	}
	if q.Lower, err = o.bound(q.Order, end{name: objectStart}, objectStartKey, objectStartInclusive); err != nil {
		return Query{}, false, err
	}
	if q.Upper, err = o.bound(q.Order, end{name: objectEnd, upper: true}, objectEndKey, objectEndInclusive); err != nil {
		return Query{}, false, err
	}
	if err := o.limit(&q); err != nil {
		return Query{}, false, err
	}
	return q, !q.Lower.Set && !q.Upper.Set && q.Limit == 0, nil
}

// An object is the members of a query object, as JSON texts.
type object map[string]string

var errObject = fault.New(fault.Invalid, "a query must be an object with members that the protocol knows, each once")

// readObject splits a query object into its members.
func readObject(text []byte) (object, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	if first, err := d.ReadToken(); err != nil || first.Kind() != '{' {
		return nil, errObject
	}
	o := object{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errObject
		}
		member := name.String() // before the next read, which takes it away
		switch member {
		case objectIndex, objectLimit, objectViewFrom, objectStart, objectStartKey, objectStartInclusive,
			objectEnd, objectEndKey, objectEndInclusive:
		default:
			return nil, errObject
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, errObject
		}
		if err := checkLength(member, string(value)); err != nil {
			return nil, err
		}
		o[member] = string(value)
	}
	if last, err := d.ReadToken(); err != nil || last.Kind() != '}' {
		return nil, errObject
	}
	return o, nil
}

// order returns what the children are ordered by.
func (o object) order() (Order, error) {
	text, ok := o[objectIndex]
	if !ok {
		return ByPriority(), nil
	}
	name, ok := parsePrimitive(text)
	if !ok || name.Kind() != tree.String {
		return Order{}, errIndex(nil)
	}
	if name.Text() == keyIndex {
		return ByKey(), nil
	}
	index, err := ParseIndex(name.Text())
	if err != nil {
		return Order{}, errIndex(err)
	}
	return index.Order(), nil
}

func errIndex(cause error) error {
	return fault.Wrap(fault.Invalid, cause, "the index of a query must be a path, .key, .value or .priority")
}

// bound returns the bound on one side: e.name is the member with its value.
func (o object) bound(order Order, e end, keyName, inclusiveName string) (Bound, error) {
	text, ok := o[e.name]
	if !ok {
		return Bound{}, nil
	}
	value, ok := parsePrimitive(text)
	if !ok {
		return Bound{}, fault.New(fault.Invalid, "Constraint index field must be a JSON primitive")
	}
	if err := e.checkKind(order, value); err != nil {
		return Bound{}, err
	}
	switch o[inclusiveName] {
	case "", "true":
	case "false":
		e.exclusive = true
	default:
		return Bound{}, fault.New(fault.Invalid, "%s must be true or false", inclusiveName)
	}
	b := Bound{Set: true, Value: value, Exclusive: e.exclusive}
	if order == ByKey() {
		b = e.beyondKeys(b)
	}
	keyText, ok := o[keyName]
	if !ok {
		return b, nil
	}
	return e.withObjectKey(order, b, keyText)
}

// withObjectKey returns b with the key that stands beside its value.
func (e end) withObjectKey(order Order, b Bound, text string) (Bound, error) {
	key, ok := parsePrimitive(text)
	if !ok || key.Kind() != tree.String {
		return Bound{}, errKey(nil)
	}
	name := key.Text()
	switch {
	case name == minName, name == maxName, name == maxKeyName:
		if order != ByKey() {
			b.Exclusive = (name == minName) == e.upper
		}
		return b, nil
	case order == ByKey():
		return Bound{}, fault.New(fault.Invalid, "%s takes no second key in the order by key", e.name)
	case len(name) > tree.MaxKeyBytes:
		// No key is that long, so this one is right after its longest beginning. SDKs
		// send such keys for the last place before another key.
		name = cutText(name, tree.MaxKeyBytes)
		b.Exclusive = !e.upper
	}
	if err := tree.CheckKey(name); err != nil {
		return Bound{}, errKey(err)
	}
	b.Key = name
	return b, nil
}

// beyondKeys returns b, a bound in the order by key, with a text in the place of a
// name that stands for a place before or after all keys.
func (e end) beyondKeys(b Bound) Bound {
	switch name := b.Value.Text(); name {
	case minName:
		if !e.upper {
			return Bound{}
		}
		return Bound{Set: true, Value: tree.StringLeaf(strconv.Itoa(math.MinInt32)), Exclusive: true}
	case maxName, maxKeyName:
		if e.upper {
			return Bound{}
		}
		last := strings.Repeat("\uffff", tree.MaxKeyBytes/len("\uffff"))
		return Bound{Set: true, Value: tree.StringLeaf(last), Exclusive: true}
	}
	return b
}

// cutText returns as many characters of text as fit into a number of bytes.
func cutText(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

var errLimit = errors.New("not a number")

// limit sets how many children are selected, and from which end.
func (o object) limit(q *Query) error {
	text, ok := o[objectLimit]
	if !ok {
		return nil // a view from one side says nothing by itself
	}
	limit, err := parseLimit(text)
	if err != nil {
		return fault.New(fault.Invalid, "%s must be an integer", objectLimit)
	}
	if limit <= 0 {
		return fault.New(fault.Invalid, "%s must be positive", objectLimit)
	}
	q.Limit = limit
	switch o[objectViewFrom] {
	case `"l"`:
	case `"r"`:
		q.Last = true
	case "":
		q.Last = !q.Lower.Set
	default:
		return fault.New(fault.Invalid, `%s must be "l" or "r"`, objectViewFrom)
	}
	return nil
}

// parseLimit reads an integer, which some clients print as a double.
func parseLimit(text string) (int, error) {
	n, ok := parsePrimitive(text)
	if !ok || n.Kind() != tree.Integer || n.Int() > math.MaxInt32 {
		return 0, errLimit
	}
	return int(n.Int()), nil
}
