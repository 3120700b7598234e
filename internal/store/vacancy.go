package store

import "github.com/cockroachdb/pebble/v2"

// This file finds out what was at a place before a write.

// vacancy returns the depth of the highest place above l, or l itself, where
// nothing is.
func (b *builder) vacancy(l location) (int, error) {
	for d := l.depth() - 1; d >= 0; d-- {
		exists, known := b.filledBefore[string(l.at(d))]
		if !known {
			var err error
			if exists, err = b.has(l.at(d)); err != nil {
				return 0, err
			}
			b.remember(l.at(d), exists)
		}
		if exists {
			return d + 1, nil
		}
	}
	return 0, nil
}

// remember notes whether something was at a place before the write, if that is
// likely to be asked again.
func (b *builder) remember(key []byte, exists bool) {
	if !b.isPatch {
		return
	}
	if b.filledBefore == nil {
		b.filledBefore = make(map[string]bool)
	}
	b.filledBefore[string(key)] = exists
}

// has reports whether there are rows in the subtree of a key.
func (b *builder) has(key []byte) (bool, error) {
	row, err := b.seek(key, key)
	return row != nil && belongs(row, key), err
}

// seek returns the key of the first row at or behind from in the subtree of a key,
// nil if there is none. It never steps: a seek past a row that was rewritten often
// is quick. Nor does it look at what was deleted behind the subtree.
func (b *builder) seek(from, key []byte) ([]byte, error) {
	if b.it == nil {
		b.scratch = appendSpace(b.scratch[:0], spaceData, b.id)
		b.all.LowerBound = b.scratch
		b.all.UpperBound = subtreeEnd(b.scratch, b.scratch)[len(b.scratch):]
		it, err := b.reader.NewIter(&b.all) // which copies the bounds
		if err != nil {
			return nil, damaged(err)
		}
		b.it = it
	}
	b.limit = subtreeEnd(b.limit[:0], key)
	if b.it.SeekGEWithLimit(from, b.limit) != pebble.IterValid {
		return nil, damaged(b.it.Error())
	}
	return b.it.Key(), nil
}
