package client

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/livetree/livetree/internal/tree"
)

// report tells of a problem that begins back bytes before the place that is read.
func (s *Splitter) report(back int, format string, args ...any) {
	s.stats.Problems++
	if s.Problem == nil {
		return
	}
	line, column := s.text.position(s.decoder.InputOffset() - int64(back))
	s.Problem(Problem{line, column, fmt.Sprintf(format, args...)})
}

// checkKey reports what is wrong with a key, whose text is length bytes long.
func (s *Splitter) checkKey(c *container, key string, length int) {
	switch key {
	case ".priority":
	case ".value", ".sv":
		if c.children {
			s.report(length, "%s stands beside children", key)
		}
	default:
		if err := tree.CheckKey(key); err != nil {
			s.report(length, "%v", err)
		}
		if c.wraps {
			s.report(length, "%q stands beside .value or .sv", key)
		}
		s.checkDepth(length)
	}
	s.checkRepeated(c, key, length)
}

// checkRepeated reports a key that the object has already. A server would find it
// in one request, but the object may become many.
func (s *Splitter) checkRepeated(c *container, key string, length int) {
	if slices.Contains(c.few, key) {
		s.report(length, "the key %.200q is repeated", key)
		return
	}
	if len(c.few) < maxFew {
		c.few = append(c.few, key)
		return
	}
	if c.seen == nil {
		c.seen = make(map[uint64]struct{})
	}
	hash := maphash.String(s.seed, key)
	if _, ok := c.seen[hash]; ok {
		s.report(length, "the key %.200q is repeated", key)
	} else if len(c.seen) < maxSeen {
		c.seen[hash] = struct{}{}
	}
}

// checkDepth reports a member that has too many keys above it.
func (s *Splitter) checkDepth(length int) {
	depth := s.Depth + len(s.open)
	s.stats.Depth = max(s.stats.Depth, depth)
	if depth > tree.MaxDepth {
		s.report(length, "%v", tree.ErrTooDeep)
	}
}

// checkLeaf reports what is wrong with a leaf.
func (s *Splitter) checkLeaf(key string, raw []byte) {
	if c := s.top(); c == nil || c.isArray || key != ".priority" {
		if raw[0] != 'n' {
			s.stats.Leaves++
		}
	} else if raw[0] == 't' || raw[0] == 'f' {
		s.report(len(raw), "a priority must be a number or a string")
	}
	switch {
	case raw[0] == '"':
		if len(raw) > tree.MaxStringBytes && unquotedLength(raw) > tree.MaxStringBytes {
			s.report(len(raw), "a string is longer than %d MiB", tree.MaxStringBytes>>20)
		}
		if key == ".sv" && !s.top().isArray && string(raw) != `"timestamp"` {
			s.report(len(raw), "a server value%s", increments(key))
		}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		if len(raw) < 300 && !bytes.ContainsAny(raw, "eE") {
			return
		}
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			s.report(len(raw), "the number %.40s is out of range", raw)
		}
	}
}

func unquotedLength(raw []byte) int {
	text, err := unquote(raw)
	if err != nil {
		return 0
	}
	return len(text)
}
