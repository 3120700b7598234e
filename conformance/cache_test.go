package conformance_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A cache is what a client knows of a location, by the events of a stream. It is
// written from the specification alone. Objects are map[string]any, and so are
// arrays; no data is nil.
type cache struct{ root any }

// apply does what an event says.
func (c *cache) apply(event, text string) error {
	var payload struct {
		Path string
		Data any
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&payload); err != nil {
		return fmt.Errorf("%s is not JSON: %w", show(text), err)
	}
	keys := strings.FieldsFunc(payload.Path, func(r rune) bool { return r == '/' })
	switch event {
	case "put":
		c.root = replace(c.root, keys, objects(payload.Data))
	case "patch":
		children, ok := payload.Data.(map[string]any)
		if !ok {
			return fmt.Errorf("a patch has the data %s", show(text))
		}
		for key, data := range children {
			if strings.Contains(key, "/") {
				return fmt.Errorf("a patch has the key %s", key)
			}
			c.root = replace(c.root, append(keys[:len(keys):len(keys)], key), objects(data))
		}
	default:
		return fmt.Errorf("the event %s is not known", event)
	}
	return nil
}

// replace returns a node with other data at a place in it.
func replace(node any, keys []string, data any) any {
	if len(keys) == 0 {
		return data
	}
	object, ok := node.(map[string]any)
	if !ok && data == nil {
		return node // there is nothing to take away
	}
	if !ok {
		object = map[string]any{}
	}
	if child := replace(object[keys[0]], keys[1:], data); child != nil {
		object[keys[0]] = child
	} else {
		delete(object, keys[0])
	}
	if len(object) == 0 {
		return nil
	}
	return object
}

// objects returns data in the one form that the cache has.
func objects(data any) any {
	object := map[string]any{}
	switch data := data.(type) {
	case map[string]any:
		for key, child := range data {
			object[key] = objects(child)
		}
	case []any:
		for i, child := range data {
			object[strconv.Itoa(i)] = objects(child)
		}
	default:
		return data
	}
	for key, child := range object {
		if child == nil {
			delete(object, key)
		}
	}
	if len(object) == 0 {
		return nil
	}
	return object
}

// decode reads the body of an answer.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var data any
	err := decoder.Decode(&data)
	return objects(data), err
}

func TestCache(t *testing.T) {
	var c cache
	for _, step := range []struct{ event, text, want string }{
		{"put", `{"path":"/","data":{"a":1,"b":{"c":2}}}`, `{"a":1,"b":{"c":2}}`},
		{"put", `{"path":"/b/d","data":[3]}`, `{"a":1,"b":{"c":2,"d":[3]}}`},
		{"patch", `{"path":"/b","data":{"c":null,"e":4}}`, `{"a":1,"b":{"d":[3],"e":4}}`},
		{"put", `{"path":"/a/x","data":null}`, `{"a":1,"b":{"d":[3],"e":4}}`},
		{"put", `{"path":"/a/x","data":5}`, `{"a":{"x":5},"b":{"d":[3],"e":4}}`},
		{"patch", `{"path":"/","data":{"a":null,"b":6}}`, `{"b":6}`},
		{"put", `{"path":"/b","data":null}`, `null`},
	} {
		if err := c.apply(step.event, step.text); err != nil {
			t.Fatal(err)
		}
		if want, err := decode([]byte(step.want)); err != nil || !reflect.DeepEqual(c.root, want) {
			t.Errorf("after %s %s the cache is %v, want %v", step.event, step.text, c.root, want)
		}
	}
	for event, text := range map[string]string{"put": `{"path":`, "patch": `{"path":"/","data":[1]}`, "other": `{}`} {
		if c.apply(event, text) == nil {
			t.Errorf("%s %s is taken", event, text)
		}
	}
}
