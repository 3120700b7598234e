package tree

import (
	"fmt"
	"math"
)

// This file reads the keys that begin with a dot: .value, .priority and .sv.

// construct reads the value of a key that begins with a dot.
func (d *decoder) construct(o *openObject, name string, at position) error {
	var slot **cell
	switch name {
	case ".value":
		slot = &o.value
	case ".priority":
		slot = &o.priority
	case ".sv":
		slot = &o.sv
	default:
		return d.failAt(at, ErrInvalidKey, "%v: %q is not .value, .priority or .sv", ErrInvalidKey, name)
	}
	if *slot != nil {
		return d.failAt(at, ErrValue, "the key %q is repeated", name)
	}
	if err := d.expect(':', `":"`); err != nil {
		return err
	}
	var c cell
	var err error
	if name == ".sv" {
		c, err = d.serverValue()
	} else {
		c, err = d.leafValue(name)
	}
	*slot = &c
	return err
}

// leafValue reads the value of .value or .priority: a primitive or a server
// value.
func (d *decoder) leafValue(name string) (cell, error) {
	c, err := d.peek()
	if err != nil {
		return cell{}, err
	}
	at := d.position()
	switch c {
	case '{':
		if _, err := d.onlyKey(".sv", fmt.Sprintf("%s must be a primitive value", name)); err != nil {
			return cell{}, err
		}
		value, err := d.serverValue()
		if err != nil {
			return cell{}, err
		}
		return value, d.expect('}', `"}": .sv must be the only key of its object`)
	case '[':
		return cell{}, d.fail(ErrValue, "%s must be a primitive value", name)
	}
	value, err := d.primitive(c)
	if err == nil && name == ".priority" && value.kind == Boolean {
		err = d.failAt(at, ErrValue, "a priority must be a string, a number or null")
	}
	return value, err
}

// onlyKey reads an opening brace and the key that must follow it, with its
// colon.
func (d *decoder) onlyKey(name, otherwise string) (position, error) {
	at := d.position()
	d.pos++ // the brace
	c, err := d.peek()
	if err != nil {
		return at, err
	}
	if c != '"' {
		return at, d.failAt(at, ErrValue, "%s", otherwise)
	}
	start := len(d.slab.text)
	text, err := d.appendString(d.slab.text, MaxKeyBytes, "a key")
	d.slab.text = text[:start]
	if err != nil {
		return at, err
	}
	if string(text[start:]) != name {
		return at, d.failAt(at, ErrValue, "%s", otherwise)
	}
	return at, d.expect(':', `":"`)
}

const unknownServerValue = `a server value is "timestamp" or {"increment": number}`

// serverValue reads what stands behind ".sv":.
func (d *decoder) serverValue() (cell, error) {
	c, err := d.peek()
	if err != nil {
		return cell{}, err
	}
	at := d.position()
	d.slab.unresolved = true
	switch c {
	case '"':
		start := len(d.slab.text)
		text, err := d.appendString(d.slab.text, MaxKeyBytes, "a server value")
		d.slab.text = text[:start]
		if err != nil {
			return cell{}, err
		}
		if string(text[start:]) != "timestamp" {
			return cell{}, d.failAt(at, ErrValue, unknownServerValue)
		}
		d.slab.time = &noTime
		return cell{kind: serverTime}, nil
	case '{':
		return d.incrementValue()
	}
	return cell{}, d.failAt(at, ErrValue, unknownServerValue)
}

func (d *decoder) incrementValue() (cell, error) {
	at, err := d.onlyKey("increment", unknownServerValue)
	if err != nil {
		return cell{}, err
	}
	c, err := d.peek()
	if err != nil {
		return cell{}, err
	}
	if c != '-' && (c < '0' || c > '9') {
		return cell{}, d.failAt(at, ErrValue, unknownServerValue)
	}
	number := d.position()
	by, err := d.scanNumber()
	if err != nil {
		return cell{}, err
	}
	if math.Abs(by.Float()) >= maxIncrement {
		return cell{}, d.failAt(number, ErrValue, "an increment must be below 2^970, about 1e292, in size")
	}
	d.slab.increments = true
	kind := serverIncrementInteger
	if by.kind == Double {
		kind = serverIncrementDouble
	}
	return cell{kind: kind, bits: by.bits}, d.expect('}', `"}"`)
}

// withPriority joins a leaf and its priority.
func (d *decoder) withPriority(value cell, priority *cell) cell {
	if priority == nil || priority.kind == Null || value.kind == Null {
		return value
	}
	first := len(d.slab.cells)
	d.slab.cells = append(d.slab.cells, *priority, value)
	return cell{kind: value.kind, priority: true, bits: pair(first, 1)}
}
