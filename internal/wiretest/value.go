package wiretest

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A value is the text of a JSON value without spaces; "" for one that is not there.
type value struct{ raw jsontext.Value }

// parse returns the value of a text; one that is not there if it is not JSON.
func parse(text string) value {
	v := value{jsontext.Value(text)}
	if v.raw.Compact() != nil {
		return value{}
	}
	return v
}

// checked returns the members of an object. Names twice and bad UTF-8 are refused.
func checked(text string) (map[string]value, error) {
	raw := jsontext.Value(text)
	if err := raw.Compact(); err != nil {
		return nil, violation("%.200q, which is not JSON: %v", text, err)
	}
	object, ok := value{raw}.object()
	if !ok {
		return nil, violation("%.200q: a message is a JSON object", text)
	}
	return object, nil
}

func (v value) String() string { return string(v.raw) }

// canonical returns the text that all values have which JavaScript takes for equal.
func (v value) canonical() string {
	raw := v.raw.Clone()
	if raw.Canonicalize() != nil {
		return v.String()
	}
	return string(raw)
}

func (v value) object() (map[string]value, bool) {
	var members map[string]jsontext.Value
	if v.raw.Kind() != '{' || json.Unmarshal(v.raw, &members) != nil {
		return nil, false
	}
	object := make(map[string]value, len(members))
	for name, member := range members {
		object[name] = value{member}
	}
	return object, true
}

// member returns a member of an object; one that is not there for anything else.
func (v value) member(name string) value {
	object, _ := v.object()
	return object[name]
}

func (v value) list() ([]value, bool) {
	var members []jsontext.Value
	if v.raw.Kind() != '[' || json.Unmarshal(v.raw, &members) != nil {
		return nil, false
	}
	list := make([]value, len(members))
	for i, member := range members {
		list[i] = value{member}
	}
	return list, true
}

func (v value) isTexts() bool {
	list, ok := v.list()
	for _, member := range list {
		ok = ok && member.isText()
	}
	return ok
}

func (v value) isText() bool { return v.raw.Kind() == '"' }
func (v value) isNull() bool { return v.raw.Kind() == 'n' }

func (v value) isLeaf() bool {
	switch v.raw.Kind() {
	case '"', '0', 't', 'f':
		return true
	}
	return false
}

// text returns the text of a string, "" for anything else.
func (v value) text() string {
	var text string
	if !v.isText() || json.Unmarshal(v.raw, &text) != nil {
		return ""
	}
	return text
}

// integer returns a number that is written as an integer.
func (v value) integer() (int64, bool) {
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	return n, err == nil
}

// objectText prints members again.
func objectText(members map[string]value) string {
	raw := map[string]jsontext.Value{}
	for name, member := range members {
		raw[name] = member.raw
	}
	text, err := json.Marshal(raw, json.Deterministic(true))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
