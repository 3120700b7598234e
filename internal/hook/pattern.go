package hook

import (
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// maxPattern bounds the text of a pattern.
const maxPattern = 4096

// A Pattern matches locations: a key stands for itself, $name for any key. Its zero value
// matches the root alone.
type Pattern struct {
	keys []string // with $ where any key matches
}

// ParsePattern reads a pattern as rules write it: /orders/$id.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	if len(text) > maxPattern || !strings.HasPrefix(text, "/") {
		return p, fault.New(fault.Invalid, "invalid path %.80q: it must begin with a slash and have at most %d bytes, such as /orders/$id", text, maxPattern)
	}
	var names []string
	for key := range strings.SplitSeq(strings.Trim(text, "/"), "/") {
		if key == "" {
			if strings.Trim(text, "/") == "" {
				break
			}
			return p, fault.New(fault.Invalid, "invalid path %.80q: a key is missing between two slashes", text)
		}
		name, wild := strings.CutPrefix(key, "$")
		if err := tree.CheckKey(name); err != nil {
			return p, fault.Wrap(fault.Invalid, err, "invalid path %.80q: %.80q: %v", text, key, err)
		}
		if wild && slices.Contains(names, name) {
			return p, fault.New(fault.Invalid, "invalid path %.80q: $%.80s is there twice", text, name)
		}
		if wild {
			names = append(names, name)
		}
		if p.keys = append(p.keys, key); len(p.keys) > tree.MaxDepth {
			return p, fault.New(fault.Invalid, "invalid path %.80q: %v", text, tree.ErrTooDeep)
		}
	}
	return p, nil
}

// String returns the pattern as it is written.
func (p Pattern) String() string { return "/" + strings.Join(p.keys, "/") }

// Params returns what each $name stands for at a location that the pattern matches.
func (p Pattern) Params(location tree.Path) map[string]string {
	params := map[string]string{}
	i := 0
	for key := range location.Keys() {
		if i == len(p.keys) {
			break
		}
		if name, wild := strings.CutPrefix(p.keys[i], "$"); wild {
			params[name] = key
		}
		i++
	}
	return params
}

// isWild reports whether a key of a pattern stands for any key.
func isWild(key string) bool { return strings.HasPrefix(key, "$") }

// Matches reports whether the pattern matches a location.
func (p Pattern) Matches(location tree.Path) bool {
	i := 0
	for key := range location.Keys() {
		if i == len(p.keys) || !isWild(p.keys[i]) && p.keys[i] != key {
			return false
		}
		i++
	}
	return i == len(p.keys)
}
