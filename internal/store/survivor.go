package store

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/tree"
)

// This file finds out which nodes a write leaves without data: they lose their
// priorities and index rows.

// tidy deletes the priorities, and what is left of the indexes, of nodes that
// lost their last child.
func (b *builder) tidy() error {
	for _, h := range b.homes.list {
		if !h.empty {
			continue
		}
		for d := h.depth() - 1; d >= 0; d-- {
			survives, err := b.survives(h.at(d))
			if err != nil {
				return err
			}
			if survives {
				break
			}
			if err := errors.Join(b.setPriority(h.at(d), tree.Leaf{}), b.clearIndexes(h.at(d))); err != nil {
				return err
			}
		}
	}
	return nil
}

// survives reports whether the write leaves data at or below the node with a
// key, which was split before it.
func (b *builder) survives(key []byte) (bool, error) {
	if answer, known := b.survivors[string(key)]; known {
		return answer, nil
	}
	answer, err := b.findSurvivor(key)
	if b.survivors == nil {
		b.survivors = make(map[string]bool)
	}
	b.survivors[string(key)] = answer
	return answer, err
}

func (b *builder) findSurvivor(key []byte) (bool, error) {
	if b.filled == nil {
		b.fill()
	}
	if b.filled[string(key)] {
		return true, nil
	}
	for from := key; ; {
		row, err := b.seek(from, key)
		if err != nil || row == nil || !belongs(row, key) {
			return false, err
		}
		end, isPriority := b.emptied(row)
		switch {
		case end > 0:
			from = subtreeEnd(nil, row[:end])
		case isPriority:
			from = append(bytes.Clone(row), 0)
		default:
			return true, nil
		}
	}
}

// fill works out b.filled. Looking through the homes for each answer instead took
// seconds for a PATCH of ten thousand paths.
func (b *builder) fill() {
	b.filled = make(map[string]bool)
	for _, h := range b.homes.list {
		for d := h.depth(); d >= 0 && !h.empty && !b.filled[string(h.at(d))]; d-- {
			b.filled[string(h.at(d))] = true
		}
	}
}

// emptied returns the length of the key of the home that held a row and holds
// nothing any more, 0 if there is none; and whether the row is a priority.
func (b *builder) emptied(row []byte) (end int, isPriority bool) {
	for end = len(dataPrefix(b.id)); ; {
		if h := b.homes.at(row[:end]); h != nil && h.empty {
			return end, false
		}
		n := componentLen(row[end:])
		if n < 0 {
			return 0, len(row) == end+1 && row[end] == priorityMark
		}
		end += n
	}
}
