package watch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// A cache is what a client keeps of a location by applying events to it. It is
// written from the interface's description alone: nil is no data, an object is
// a map, and an array is the object that it stands for.
type cache struct{ value any }

// parseJSON returns a JSON text as caches hold it.
func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%w in %.200s", err, text)
	}
	return prune(v), nil
}

// prune makes objects of arrays, and removes what is no data.
func prune(v any) any {
	object, ok := v.(map[string]any)
	if elements, isArray := v.([]any); isArray {
		ok, object = true, make(map[string]any)
		for i, element := range elements {
			object[strconv.Itoa(i)] = element
		}
	}
	if !ok {
		return v
	}
	kept := make(map[string]any)
	data := false
	for key, child := range object {
		if child = prune(child); child != nil {
			kept[key] = child
			data = data || key != ".priority"
		}
	}
	if !data {
		return nil
	}
	return kept
}

// put replaces what is at a path.
func (c *cache) put(path string, data any) {
	c.value = assign(c.value, splitPath(path), prune(data))
}

// patch replaces children of what is at a path.
func (c *cache) patch(path string, data any) error {
	members, ok := data.(map[string]any)
	if !ok {
		return fmt.Errorf("the data of a patch is %v", data)
	}
	keys := splitPath(path)
	for _, deletes := range []bool{false, true} { // it is one step: nothing is empty in between
		for key, child := range members {
			if strings.Contains(key, "/") {
				return fmt.Errorf("a patch names %q", key)
			}
			if child = prune(child); (child == nil) == deletes {
				c.value = assign(c.value, append(keys[:len(keys):len(keys)], key), child)
			}
		}
	}
	return nil
}

func splitPath(path string) []string {
	if path == "/" {
		return nil
	}
	return strings.Split(path[1:], "/")
}

// assign returns v with data at a path. A leaf on the way is replaced; where it
// has a priority, as the export form shows it, that stays.
func assign(v any, path []string, data any) any {
	if len(path) == 0 {
		return data
	}
	object, ok := v.(map[string]any)
	if !ok && data == nil {
		return v
	}
	changed := make(map[string]any)
	maps.Copy(changed, object)
	child := assign(changed[path[0]], path[1:], data)
	if child != nil {
		delete(changed, ".value")
	}
	changed[path[0]] = child
	if child == nil {
		delete(changed, path[0])
	}
	return prune(changed)
}

// apply applies the text of an event.
func (c *cache) apply(patch bool, text []byte) error {
	var event struct {
		Path string
		Data json.RawMessage
	}
	if err := json.Unmarshal(text, &event); err != nil {
		return fmt.Errorf("%w in %.200s", err, text)
	}
	if !patch {
		data, err := parseJSON(event.Data)
		c.put(event.Path, data)
		return err
	}
	d := json.NewDecoder(bytes.NewReader(event.Data))
	d.UseNumber()
	var data any
	if err := d.Decode(&data); err != nil {
		return err
	}
	return c.patch(event.Path, data)
}

// at returns what is at a path; nil for no data.
func (c *cache) at(path string) any {
	v := c.value
	for _, key := range splitPath(path) {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func (c *cache) String() string {
	text, err := json.Marshal(c.value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
