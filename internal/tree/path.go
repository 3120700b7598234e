package tree

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

const (
	// MaxKeyBytes is the longest child name, in bytes of UTF-8.
	MaxKeyBytes = 768
	// MaxDepth is the number of keys from the root to the deepest leaf.
	MaxDepth = 32
)

// ErrInvalidKey and ErrTooDeep are the two ways in which a path can be wrong.
var (
	ErrInvalidKey = errors.New("invalid child name")
	ErrTooDeep    = fmt.Errorf("more than %d levels deep", MaxDepth)
)

// A Path is a location in a tree: zero or more keys below the root. It is
// always valid, comparable with ==, and its zero value is the root.
type Path struct {
	keys string // "a/b/c"; keys hold no slash, so the text is unambiguous
}

// ParsePath reads plain keys joined by slashes. Empty segments are ignored, so
// "/a//b/" is the path of the keys a and b. Nothing is percent-decoded.
func ParsePath(text string) (Path, error) {
	text = strings.Trim(text, "/")
	for strings.Contains(text, "//") { // rarely
		text = strings.ReplaceAll(text, "//", "/")
	}
	p := Path{text}
	depth := 0
	for key := range p.Keys() {
		if err := CheckKey(key); err != nil {
			return Path{}, err
		}
		if depth++; depth > MaxDepth {
			return Path{}, ErrTooDeep
		}
	}
	return p, nil
}

// CheckKey reports why key cannot name a child, or nil. The error wraps
// ErrInvalidKey.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: it is empty", ErrInvalidKey)
	}
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKeyBytes)
	}
	ascii := true
	for i := range len(key) {
		c := key[i]
		if c >= utf8.RuneSelf {
			ascii = false
		} else if forbiddenInKey[c] {
			return fmt.Errorf("%w: %q holds %q", ErrInvalidKey, key, string(rune(c)))
		}
	}
	if !ascii && !utf8.ValidString(key) {
		return fmt.Errorf("%w: %q is not UTF-8", ErrInvalidKey, key)
	}
	return nil
}

// forbiddenInKey marks the ASCII bytes that no key may hold: . $ # [ ] / and
// the control characters.
var forbiddenInKey = func() (table [utf8.RuneSelf]bool) {
	for _, c := range ".$#[]/\x7f" {
		table[c] = true
	}
	for c := range 0x20 {
		table[c] = true
	}
	return table
}()

// Clone returns a copy of p. What it was a part of, a request perhaps, need not be
// kept for it.
func (p Path) Clone() Path { return Path{strings.Clone(p.keys)} }

// Bytes returns how many bytes the keys take, with what separates them.
func (p Path) Bytes() int { return len(p.keys) }

// Copies makes copies of paths that are kept for a while, many in one piece of memory. Of
// what the paths were a part of nothing is kept. The zero value is ready.
type Copies struct {
	text strings.Builder
}

// copiesBytes is how much memory Copies takes at a time.
const copiesBytes = 2 << 10

// Of returns a copy of p.
func (c *Copies) Of(p Path) Path {
	if c.text.Cap()-c.text.Len() < len(p.keys) {
		c.text.Reset() // earlier copies have what it leaves
		c.text.Grow(max(copiesBytes, len(p.keys)))
	}
	begin := c.text.Len()
	c.text.WriteString(p.keys)
	return Path{c.text.String()[begin:]}
}

// Child returns the path of the child called key, which must be valid.
func (p Path) Child(key string) Path {
	if p.keys == "" {
		return Path{key}
	}
	return Path{p.keys + "/" + key}
}

// Join returns the path that rel names when it starts at p.
func (p Path) Join(rel Path) Path {
	if rel.keys == "" {
		return p
	}
	return p.Child(rel.keys)
}

// Parent returns the path without its last key. The root is its own parent.
func (p Path) Parent() Path {
	i := strings.LastIndexByte(p.keys, '/')
	if i < 0 {
		return Path{}
	}
	return Path{p.keys[:i]}
}

// Last returns the last key, or "" for the root.
func (p Path) Last() string {
	return p.keys[strings.LastIndexByte(p.keys, '/')+1:]
}

// IsRoot reports whether p is the root.
func (p Path) IsRoot() bool { return p.keys == "" }

// Depth returns the number of keys.
func (p Path) Depth() int {
	if p.keys == "" {
		return 0
	}
	return strings.Count(p.keys, "/") + 1
}

// Keys yields the keys from the root downwards.
func (p Path) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := p; !rest.IsRoot(); {
			key, below := rest.Cut()
			if !yield(key) {
				return
			}
			rest = below
		}
	}
}

// Cut splits p into its first key and the rest. The root gives "" and the root.
func (p Path) Cut() (key string, rest Path) {
	key, below, _ := strings.Cut(p.keys, "/")
	return key, Path{below}
}

// Contains reports whether q is at or below p.
func (p Path) Contains(q Path) bool {
	if p.keys == "" {
		return true
	}
	rest, ok := strings.CutPrefix(q.keys, p.keys)
	return ok && (rest == "" || rest[0] == '/')
}

// Overlaps reports whether q is at, above or below p.
func (p Path) Overlaps(q Path) bool { return p.Contains(q) || q.Contains(p) }

// Ancestor returns the path that is some levels above p.
func (p Path) Ancestor(levels int) Path {
	for range levels {
		p = p.Parent()
	}
	return p
}

// Ancestors yields every path above p, the nearest first.
func (p Path) Ancestors() iter.Seq[Path] {
	return func(yield func(Path) bool) {
		for !p.IsRoot() {
			p = p.Parent()
			if !yield(p) {
				return
			}
		}
	}
}

// compareStep is how many bytes Compare looks at in one step while they are the same: the paths of a PATCH may have 20 KiB in common.
const compareStep = 64

// Compare orders paths such that all that is below a path follows it, before anything
// else does. It is not the order of keys.
func (p Path) Compare(q Path) int {
	n, same := min(len(p.keys), len(q.keys)), 0
	for same+compareStep <= n && p.keys[same:same+compareStep] == q.keys[same:same+compareStep] {
		same += compareStep
	}
	for i := same; i < n; i++ {
		if a, b := p.keys[i], q.keys[i]; a != b {
			switch {
			case a == '/':
				return -1
			case b == '/':
				return 1
			}
			return cmp.Compare(a, b)
		}
	}
	return len(p.keys) - len(q.keys)
}

// Below returns q relative to p, which must contain it.
func (p Path) Below(q Path) Path {
	if p.keys == "" {
		return q
	}
	return Path{strings.TrimPrefix(q.keys[len(p.keys):], "/")}
}

// String returns the path as it appears in URLs and events, before
// percent-encoding: "/" for the root, else "/a/b".
func (p Path) String() string { return "/" + p.keys }
