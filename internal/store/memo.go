package store

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/stamp"
	"github.com/livetree/livetree/internal/tree"
)

// memoShare is the part of the cache that memos may take, and maxMemo how long
// one may be: what a printer gathers before it writes, or a little more.
const (
	memoShare = 8
	maxMemo   = 2 * flushBytes
)

// memos are the texts of reads that took many rows. A memo answers the same read
// again while nothing that it shows was written, which its stamp tells, exactly.
//
// A read is remembered when it is asked for a second time. All memos together
// take a part of CacheBytes at most, which the block cache leaves to them; those
// go first that were not asked for for the longest time.
type memos struct {
	stamps stamp.Stamps
	keys   stamp.Keys // for shallow reads
	seed   maphash.Seed
	asked  [1024]atomic.Uint64 // hashes of reads that were not remembered
	// at counts the memos by their location, so that a read that has none
	// need not wait for mu.
	at [1 << 12]atomic.Int32

	mu    sync.Mutex
	limit int64
	bytes int64
	all   map[memoKey]*list.Element
	order *list.List // of *memo, the newest in front
}

// A memoKey is a read.
type memoKey struct {
	id       layout.ID
	path     tree.Path
	form     tree.Form
	shallow  bool
	selected bool // by the query
	query    query.Query
	digest   Digest // of the node; 0 for none
	shape    bool   // of the node, see Printer.isArray
}

type memo struct {
	key   memoKey
	view  uint64 // whose text it is
	text  []byte
	last  []byte // of a shallow read: the component of the last key
	bytes int64  // that all of it takes
}

// memoBytes is about what a memo takes beside texts.
const memoBytes = 1 << 10

// newMemo copies all that it keeps: the key is a part of the request.
func newMemo(k memoKey, view uint64, text, last []byte) *memo {
	keyBytes := 0
	k.path = k.path.Clone()
	k.query, keyBytes = k.query.Clone()
	size := memoBytes + len(text) + len(last) + len(k.path.String()) + keyBytes
	return &memo{k, view, bytes.Clone(text), bytes.Clone(last), int64(size)}
}

func (m *memos) init(cacheBytes int64) {
	m.seed = maphash.MakeSeed()
	m.limit = cacheBytes / memoShare
	m.all, m.order = make(map[memoKey]*list.Element), list.New()
}

// A draft is a text that is to be remembered when it is printed, as of a view.
type draft struct {
	memos *memos
	key   memoKey
	view  uint64
	least int64  // of a shape: how many children it must have taken to be kept
	last  []byte // see memo
	// begun is what is known of a shallow read, nil if nothing is: there may be more keys after its last, and no others.
	begun *memo
}

// keep remembers the text, all of it. A nil draft forgets it.
func (d *draft) keep(text []byte) {
	if d == nil || d.key.selected && beginsWithDigit(text) {
		return
	}
	d.memos.keep(d.key, d.view, text, d.last)
}

// beginsWithDigit reports whether the first key of an object may be an index: then
// whether it is printed as an array is for AllowArray to say, and it is not
// remembered. Indexes come before all other keys.
func beginsWithDigit(text []byte) bool {
	return len(text) > 2 && '0' <= text[2] && text[2] <= '9'
}

// recall returns the text of a read, nil if it is not known.
func (t Tree) recall(k *memoKey) []byte {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	text := t.store.memos.text(k, t.origin.number)
	if text != nil && k.digest == 0 {
		t.store.counters.memoHits.Add(1)
	}
	return text
}

// newDraft returns what a read of a split node is remembered by, nil if it is not
// worth remembering. The read was not recalled: that is counted here, because only now
// it is known that the node is split.
func (t Tree) newDraft(k *memoKey) *draft {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	t.store.counters.memoMisses.Add(1)
	var begun *memo
	if k.shallow {
		begun = t.store.memos.find(k, t.origin.number)
	}
	if begun == nil && !t.store.memos.wants(k) {
		return nil
	}
	return &draft{memos: &t.store.memos, key: *k, view: t.origin.number, begun: begun}
}

// newShape returns what the shape of a node is remembered by, nil if it is not. It is
// worth it for nodes with more children than would be in a few chunks.
func newShape(t Tree, p tree.Path) *draft {
	if t.origin == nil || t.reader.Cost != nil {
		return nil
	}
	key := memoKey{id: t.reader.ID, path: p, shape: true}
	return &draft{memos: &t.store.memos, key: key, view: t.origin.number, least: int64(t.store.opts.ChunkBytes / 2)}
}

// text returns what a read shows in a view, nil if that is not known. Nobody may
// change it.
func (m *memos) text(k *memoKey, view uint64) []byte {
	found := m.find(k, view)
	if found == nil || k.shallow && m.keys.Grown(k.id, k.path) > found.view {
		return nil
	}
	return found.text
}

// find returns the memo of a read that is right in a view; that of a shallow read may lack the last keys. Nobody may change it.
func (m *memos) find(k *memoKey, view uint64) *memo {
	if m.countAt(k).Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.all[*k]
	if e == nil {
		return nil
	}
	found, newest := e.Value.(*memo), m.stamps.Of(k.id, k.path)
	if k.shallow {
		newest = m.keys.Of(k.id, k.path)
	}
	switch {
	case newest > found.view:
		m.remove(e)
		return nil
	case found.view > view: // the view is an old one
		return nil
	}
	m.order.MoveToFront(e)
	return found
}

func (m *memos) countAt(k *memoKey) *atomic.Int32 {
	return &m.at[stamp.Hash(k.id, k.path)%uint32(len(m.at))]
}

// wants reports whether a read is worth to be remembered: it came before, and not
// so long ago that many others came in between.
func (m *memos) wants(k *memoKey) bool {
	if m.limit == 0 { // an archive, which is read once
		return false
	}
	hash := maphash.Comparable(m.seed, *k) | 1
	return m.asked[hash>>1%uint64(len(m.asked))].Swap(hash) == hash
}

// keep remembers what a read shows in a view. It copies the text, and the component of the last key of a shallow read.
func (m *memos) keep(k memoKey, view uint64, text, last []byte) {
	if len(text) > maxMemo {
		return
	}
	kept := newMemo(k, view, text, last)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.all[k]; e != nil {
		if e.Value.(*memo).view >= view {
			return
		}
		m.remove(e)
	}
	m.all[kept.key] = m.order.PushFront(kept)
	m.countAt(&k).Add(1)
	m.bytes += kept.bytes
	for m.bytes > m.limit {
		m.remove(m.order.Back())
	}
}

// forget drops the memos of a database.
func (m *memos) forget(id layout.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, e := range m.all {
		if k.id == id {
			m.remove(e)
		}
	}
}

func (m *memos) remove(e *list.Element) {
	dropped := m.order.Remove(e).(*memo)
	delete(m.all, dropped.key)
	m.countAt(&dropped.key).Add(-1)
	m.bytes -= dropped.bytes
}

// Stamp returns the number of a view that shows the newest write to what is at p, or of a
// later one: what a view with that number, or a greater one, shows there is still so.
func (t Tree) Stamp(p tree.Path) uint64 { return t.store.memos.stamps.Of(t.reader.ID, p) }
