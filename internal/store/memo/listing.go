package memo

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unsafe"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file amends the lists of keys that are remembered of shallow reads. A commit after which a node has one child more, or one
// less, notes that beside the list of the node, if there is one. Who reads the list next puts what is noted in its place.
//
// The last key of a list stays as long as the list: when that child goes the list is forgotten. So a child that comes after all others
// always comes after the list, whose end is read from the rows.

// maxChanges is how many children may have come and gone since a list was printed.
const maxChanges = 16

// A keyChange is a child that came or went since the keys of its node were listed. One that was seen to come after all others has none.
type keyChange struct {
	key  string
	came bool
	view uint64 // the first one that shows it
}

// A Listing is a list of keys that is known of a node, if one is, and what has changed since, up to a view. There may be more
// keys after the last of the list.
type Listing struct {
	memo    *memo
	changes []keyChange
}

// Known reports whether there is a list.
func (l Listing) Known() bool { return l.memo != nil }

// Last returns the component of the key behind which the rows tell what there is.
func (l Listing) Last() []byte { return l.memo.last }

// Foretell tells of a batch that is about to be committed in a group. No view shows it yet.
func (m *Memos) Foretell(b *batch.Batch, group uint64) {
	for _, a := range b.Assignments() {
		m.stamps.Touch(b.ID, a.Path, group)
	}
	b.Relistings(func(r batch.Relisting) {
		if r.Reach == batch.Came || r.Reach == batch.Gone {
			m.amend(b.ID, r, group)
		}
		m.keys.Relist(b.ID, r, group)
	})
}

// Undo tells of a batch that was foretold in a group, and could not be committed: lists that were amended are forgotten.
func (m *Memos) Undo(b *batch.Batch, group uint64) {
	b.Relistings(func(r batch.Relisting) { m.keys.Undo(b.ID, r, group) })
}

// amend notes a child that comes or goes beside the list of its node. It is called before that is stamped: a list that is not
// there yet, or that lacks an earlier change, then shows by the stamp that it is not complete.
func (m *Memos) amend(id layout.ID, r batch.Relisting, view uint64) {
	k := Key{ID: id, Path: r.Path.Parent(), Shallow: true}
	if m.countAt(&k).Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.all[k]
	if e == nil {
		return
	}
	list, key := e.Value.(*memo), r.Path.Last()
	isEnd := r.Reach == batch.Gone && bytes.Equal(layout.AppendComponent(nil, key), list.last)
	if isEnd || len(list.changes) == maxChanges || m.keys.Single(id, k.Path) > list.amended {
		m.remove(e)
		return
	}
	size := int64(len(key))
	if list.changes == nil {
		list.changes = make([]keyChange, 0, maxChanges) // those who read the list have parts of it
		size += maxChanges * int64(unsafe.Sizeof(keyChange{}))
	}
	list.changes = append(list.changes, keyChange{strings.Clone(key), r.Reach == batch.Came, view})
	list.amended = view
	m.grow(list, size) // the list may go for it
}

// upTo returns the first changes, those that a view shows. The lock is held.
func (l *memo) upTo(view uint64) []keyChange {
	n := len(l.changes)
	for n > 0 && l.changes[n-1].view > view {
		n--
	}
	return l.changes[:n:n]
}

// size returns how long the list is after the changes, or more.
func (l Listing) size() int {
	size := len(l.memo.text)
	for _, change := range l.changes {
		size += len(change.key) + len(`"":true,`)
	}
	return size
}

// AppendTo appends the list as it is after the changes, as JSON without what closes it, and reports whether all changes are
// among its keys: behind its end the rows tell.
func (l Listing) AppendTo(dst []byte) (list []byte, whole bool) {
	whole = true
	c := carry{dst: append(dst, '{'), text: l.memo.text, from: 1, at: 1}
	for _, change := range lastChanges(l.changes) {
		if whole = c.skipTo(change.key); !whole {
			break
		}
		switch listed := c.key == change.key; {
		case listed && !change.came:
			c.copy(c.at)
			c.from = c.next
		case !listed && change.came:
			c.copy(c.at)
			c.dst = append(tree.AppendString(c.dst, change.key), ":true,"...)
		}
	}
	c.copy(len(c.text) - 1)
	return c.dst, whole
}

// lastChanges returns the last change of each key, in the order of keys.
func lastChanges(changes []keyChange) []keyChange {
	if len(changes) < 2 {
		return changes
	}
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b keyChange) int { return tree.CompareKeys(a.key, b.key) })
	n := 0
	for i, c := range sorted {
		if i+1 == len(sorted) || sorted[i+1].key != c.key {
			sorted[n] = c
			n++
		}
	}
	return sorted[:n]
}

// A carry copies a text of keys, each followed by :true and a comma or, behind the last, a bracket.
type carry struct {
	dst  []byte
	text []byte
	from int    // of the text, what is not copied yet
	at   int    // where the key begins
	key  string // it is a part of the text
	next int    // where the next one begins
}

// skipTo goes on to the first key that does not come before another one, and reports whether there is one.
func (c *carry) skipTo(key string) bool {
	c.leap(key)
	for ; c.at < len(c.text); c.at = c.next {
		if c.look(); tree.CompareKeys(c.key, key) >= 0 {
			return true
		}
	}
	return false
}

// near is how much text is gone through key by key.
const near = 512

// leap halves the text that is left until the key that is looked for must be near. Its place is then that of a key which does not come
// behind that one.
func (c *carry) leap(key string) {
	const between = `":true,"` // in a key the second quote would be escaped
	for end := len(c.text); end-c.at > near; {
		middle := c.at + (end-c.at)/2
		found := bytes.Index(c.text[middle:end], []byte(between))
		if found < 0 {
			end = middle
			continue
		}
		probe := carry{text: c.text, at: middle + found + len(between) - 1}
		if !probe.isKey() {
			return
		}
		if probe.look(); tree.CompareKeys(probe.key, key) <= 0 {
			c.at = probe.at
		} else {
			end = middle
		}
	}
}

// isKey reports whether a place behind what looks like the end of a key is that of the next one. It may be the end of a key
// that is like what stands between two.
func (c *carry) isKey() bool { return !bytes.HasPrefix(c.text[c.at:], []byte(`":true`)) }

// look reads the key at its place.
func (c *carry) look() {
	quoted := c.text[c.at+1:]
	end := bytes.IndexByte(quoted, '"')
	if bytes.IndexByte(quoted[:end], '\\') < 0 {
		c.key = unsafe.String(unsafe.SliceData(quoted), end)
	} else {
		end = c.lookEscaped(quoted)
	}
	c.next = c.at + end + len(`"":true,`)
}

// lookEscaped reads a key that is not spelled as it is, and returns how long it is spelled.
func (c *carry) lookEscaped(quoted []byte) (end int) {
	for ; quoted[end] != '"'; end++ {
		if quoted[end] == '\\' {
			end++
		}
	}
	_ = json.Unmarshal(c.text[c.at:c.at+end+len(`""`)], &c.key) // tree.AppendString has made it
	return end
}

// copy appends the text up to a place.
func (c *carry) copy(to int) {
	c.dst = append(c.dst, c.text[c.from:to]...)
	c.from = to
}
