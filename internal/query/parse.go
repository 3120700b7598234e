package query

import (
	"strconv"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// The parameters of a query, as REST spells them.
const (
	orderBy      = "orderBy"
	limitToFirst = "limitToFirst"
	limitToLast  = "limitToLast"
	startAt      = "startAt"
	startAfter   = "startAfter"
	endAt        = "endAt"
	endBefore    = "endBefore"
	equalTo      = "equalTo"
)

// besideOrder lists the parameters that need orderBy.
var besideOrder = [...]string{limitToFirst, limitToLast, startAt, startAfter, endAt, endBefore, equalTo}

// MaxParameterBytes bounds the text of one parameter. A stored string can be
// longer, but a bound that long would not pass the limit on a request's head.
// The store relies on it too: it has two bytes for the leading zeros of a key.
const MaxParameterBytes = 64 << 10

// Parse reads a query from the parameters of a request. Get returns the value
// of a parameter, percent-decoded, and whether it is there. Without any of the
// parameters there is no query. Errors are Invalid faults with the texts that
// RTDB answers, where one is known.
func Parse(get func(name string) (value string, ok bool)) (q Query, ok bool, err error) {
	p := parameters{}
	for _, name := range besideOrder {
		if value, ok := get(name); ok {
			p[name] = value
		}
	}
	order, ok := get(orderBy)
	if !ok {
		if len(p) > 0 {
			return Query{}, false, fault.New(fault.Invalid, "orderBy must be defined when other query parameters are defined")
		}
		return Query{}, false, nil
	}
	q, err = p.query(order)
	return q, err == nil, err
}

// parameters are those that a request has beside orderBy.
type parameters map[string]string

func (p parameters) has(name string) bool {
	_, ok := p[name]
	return ok
}

func (p parameters) query(order string) (q Query, err error) {
	if q.Order, err = parseOrder(order); err != nil {
		return Query{}, err
	}
	if err := p.checkTogether(); err != nil {
		return Query{}, err
	}
	if q.Limit, err = p.limit(); err != nil {
		return Query{}, err
	}
	q.Last = p.has(limitToLast)
	if q.Lower, err = p.bound(q.Order, lowerEnds); err != nil {
		return Query{}, err
	}
	if q.Upper, err = p.bound(q.Order, upperEnds); err != nil {
		return Query{}, err
	}
	return q, nil
}

// checkTogether refuses parameters that exclude each other.
func (p parameters) checkTogether() error {
	switch {
	case p.has(limitToFirst) && p.has(limitToLast):
		return fault.New(fault.Invalid, "Only one of limitToFirst and limitToLast may be specified")
	case p.has(equalTo) && (p.has(startAt) || p.has(startAfter) || p.has(endAt) || p.has(endBefore)):
		return fault.New(fault.Invalid, "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore")
	case p.has(startAt) && p.has(startAfter):
		return fault.New(fault.Invalid, "Only one of startAt and startAfter may be specified")
	case p.has(endAt) && p.has(endBefore):
		return fault.New(fault.Invalid, "Only one of endAt and endBefore may be specified")
	}
	return nil
}

func (p parameters) limit() (int, error) {
	name := limitToFirst
	if p.has(limitToLast) {
		name = limitToLast
	}
	text, ok := p[name]
	if !ok {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 32)
	if err != nil || text[0] == '+' { // which JSON does not know
		return 0, fault.New(fault.Invalid, "%s must be an integer", name)
	}
	if limit <= 0 {
		return 0, fault.New(fault.Invalid, "%s must be positive", name)
	}
	return int(limit), nil
}

// bound returns the bound that one of the parameters in ends gives.
func (p parameters) bound(order Order, ends [3]end) (Bound, error) {
	for _, e := range ends {
		if text, ok := p[e.name]; ok {
			return e.parse(order, text)
		}
	}
	return Bound{}, nil
}

// parseOrder reads orderBy: a JSON string that holds a path or one of the three
// special names.
func parseOrder(text string) (Order, error) {
	if err := checkLength(orderBy, text); err != nil {
		return Order{}, err
	}
	name, ok := parsePrimitive(text)
	if !ok || name.Kind() != tree.String {
		return Order{}, errOrder(nil)
	}
	switch name.Text() {
	case "$key":
		return ByKey(), nil
	case "$value":
		return ByValue(), nil
	case "$priority":
		return ByPriority(), nil
	}
	path, err := tree.ParsePath(name.Text())
	if err != nil || path.IsRoot() {
		return Order{}, errOrder(err)
	}
	return ByChild(path), nil
}

func errOrder(cause error) error {
	return fault.Wrap(fault.Invalid, cause, "orderBy must be a valid JSON encoded path")
}

func checkLength(name, text string) error {
	if len(text) > MaxParameterBytes {
		return fault.New(fault.Invalid, "%s is longer than %d bytes", name, MaxParameterBytes)
	}
	return nil
}
