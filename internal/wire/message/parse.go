package message

import (
	"bytes"
	"errors"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrUnreadable says that a text is no message of the protocol. There is no request that
// could be answered.
var ErrUnreadable = errors.New("the message cannot be read")

// A Control is what a control message is about.
type Control byte

// The control messages of clients.
const (
	NoControl      Control = iota // the message is a request
	Ping                          // answered with AppendPong
	Switch                        // the client goes on by the new transport
	LastByOld                     // nothing more comes by the old transport
	UnknownControl                // to be ignored
)

var controls = map[string]Control{"p": Ping, "a": Switch, "n": LastByOld}

// A Message is what a client says. It refers to the text that it was read from.
type Message struct {
	Control Control
	// Request is set if the message is no control message.
	Request Request
}

// Parse reads a message. Its only error is ErrUnreadable: what is wrong with a request
// is in Request.Err.
func Parse(text []byte) (m Message, err error) {
	r := readers.Get().(*reader)
	defer r.free()
	r.begin(text)
	kind, data, err := r.envelope()
	if err != nil {
		return Message{}, ErrUnreadable
	}
	switch kind {
	case "c":
		m.Control, err = parseControl(data)
	case "d":
		m.Request, err = parseRequest(data)
	default:
		err = ErrUnreadable
	}
	if err != nil {
		return Message{}, ErrUnreadable
	}
	return m, nil
}

// A reader goes through a JSON text. Names that stand twice are no error here: the last
// one counts, as it does for SDKs. Neither are half surrogate pairs: who needs a text
// asks for it by plainText, which refuses them.
type reader struct {
	*jsontext.Decoder
	in   bytes.Buffer
	text []byte
}

var readers = sync.Pool{New: func() any { return &reader{Decoder: new(jsontext.Decoder)} }}

func (r *reader) begin(text []byte) {
	r.text = text
	r.in = *bytes.NewBuffer(text)
	r.Reset(&r.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (r *reader) free() {
	r.text = nil
	r.in = bytes.Buffer{}
	r.Reset(&r.in)
	readers.Put(r)
}

// members calls member for each member of the object that comes next. It must read the
// value, by value. The text ends after the object.
func (r *reader) members(member func(name string) error) error {
	if first, err := r.ReadToken(); err != nil || first.Kind() != '{' {
		return ErrUnreadable
	}
	for r.PeekKind() == '"' {
		name, err := r.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	if last, err := r.ReadToken(); err != nil || last.Kind() != '}' {
		return ErrUnreadable
	}
	return nil
}

// value reads the value that comes next, as a part of the text.
func (r *reader) value() ([]byte, error) {
	v, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	end := r.InputOffset()
	return r.text[end-int64(len(v)) : end : end], nil
}

// envelope reads what every message is: its kind, and the object that is the rest.
func (r *reader) envelope() (kind string, data []byte, err error) {
	err = r.members(func(name string) error {
		v, err := r.value()
		switch name {
		case "t":
			kind, _ = plainText(v)
		case "d":
			data = v
		}
		return err
	})
	if err == nil && len(bytes.Trim(r.text[r.InputOffset():], " \t\r\n")) > 0 {
		err = ErrUnreadable // something follows
	}
	return kind, data, err
}

// parse calls member for each member of an object, with the text of its value.
func parse(text []byte, member func(name string, value []byte) error) error {
	r := readers.Get().(*reader)
	defer r.free()
	r.begin(text)
	return r.members(func(name string) error {
		v, err := r.value()
		if err != nil {
			return err
		}
		return member(name, v)
	})
}

func parseControl(data []byte) (Control, error) {
	kind := ""
	err := parse(data, func(name string, value []byte) error {
		if name == "t" {
			kind, _ = plainText(value)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if c, ok := controls[kind]; ok {
		return c, nil
	}
	return UnknownControl, nil
}

// plainText returns the text that a JSON string holds; false if it is not a string of
// valid characters.
func plainText(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if isPlain(inner) {
		return string(inner), true
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// isPlain reports whether the inside of a JSON string stands for itself.
func isPlain(inner []byte) bool {
	for _, c := range inner {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// plainInteger returns a JSON number that is an integer from 0 on.
func plainInteger(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil && n >= 0
}

var null = []byte("null")

// isNull reports whether a value is not there or null.
func isNull(value []byte) bool { return value == nil || bytes.Equal(value, null) }
