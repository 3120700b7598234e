// Package memo remembers the texts of reads that took many rows. A memo answers the same read again while nothing that it shows
// was written, which its stamp tells, exactly.
//
// A read is remembered when it is asked for a second time. All memos together take a part of the cache at most, which the block
// cache leaves to them; those go first that were not asked for for the longest time.
//
// What rules look up is remembered beside: see sights.go.
//
// The memo of a shallow read outlives the coming and going of single children: see listing.go.
package memo

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

// Share is the part of the cache that memos may take, and MaxBytes how long the text of one may be: what a printer gathers before it
// writes, or a little more.
const (
	Share    = 8
	MaxBytes = 64 << 10
)

// Memos are the memos of a store. Before Init they remember nothing, as those of an archive, which is read once.
type Memos struct {
	stamps stamp.Stamps
	keys   stamp.Keys // for shallow reads
	seed   maphash.Seed
	asked  [512]asked // about reads that were not remembered
	sights []sightPlace
	// at counts the memos by their location, so that a read that has none
	// need not wait for mu.
	at [1 << 12]atomic.Int32

	mu    sync.Mutex
	limit int64
	bytes int64
	all   map[Key]*list.Element
	order *list.List // of *memo, the newest in front
}

// A Key is a read.
type Key struct {
	ID       layout.ID
	Path     tree.Path
	Form     tree.Form
	Shallow  bool
	Selected bool // by the query
	Query    query.Query
	Digest   uint8 // of the node, one of several; 0 for none
	Shape    bool  // the bracket that the text of the node begins with
}

type memo struct {
	key  Key
	view uint64 // whose text it is
	text []byte
	last []byte // of a shallow read: the component of the last key that was listed

	// The lock of memos guards these.
	bytes   int64       // that all of it takes
	changes []keyChange // of a shallow read, since it was listed
	amended uint64      // the newest view whose single children are in changes
}

// memoBytes is about what a memo takes beside texts.
const memoBytes = 1 << 10

// newMemo copies all that it keeps but the text: the key is a part of the request.
func newMemo(k Key, view uint64, text, last []byte) *memo {
	keyBytes := 0
	k.Path = k.Path.Clone()
	k.Query, keyBytes = k.Query.Clone()
	size := memoBytes + cap(text) + len(last) + len(k.Path.String()) + keyBytes
	return &memo{key: k, view: view, text: text, last: bytes.Clone(last), bytes: int64(size), amended: view}
}

// Init makes memos for a cache of so many bytes; with 0 nothing is remembered.
func (m *Memos) Init(cacheBytes int64) {
	m.seed = maphash.MakeSeed()
	m.limit = cacheBytes / Share
	m.all, m.order = make(map[Key]*list.Element), list.New()
	m.makeSights()
}

// A Draft is a text that is to be remembered when it is printed, as of a view.
type Draft struct {
	memos *Memos
	key   Key
	view  uint64

	Last  []byte  // of a shallow read: the component of the last key
	Begun Listing // what is known of a shallow read
}

// Draft returns what a read in a view is remembered by, nil if it is not worth remembering. It is called where Text knows nothing.
func (m *Memos) Draft(k *Key, view uint64) *Draft {
	var begun Listing
	if k.Shallow {
		begun = m.Listing(k, view)
	}
	if !begun.Known() && !m.wants(k) {
		return nil
	}
	return &Draft{memos: m, key: *k, view: view, Begun: begun}
}

// Shape returns what the shape of a node is remembered by.
func (m *Memos) Shape(id layout.ID, p tree.Path, view uint64) *Draft {
	return &Draft{memos: m, key: Key{ID: id, Path: p, Shape: true}, view: view}
}

// Text returns what is remembered, nil if nothing is.
func (d *Draft) Text() []byte { return d.memos.Text(&d.key, d.view) }

// Keep remembers the text, all of it. A nil draft forgets it.
func (d *Draft) Keep(text []byte) {
	if d == nil || d.key.Selected && beginsWithDigit(text) {
		return
	}
	d.memos.Keep(d.key, d.view, text, d.Last)
}

// beginsWithDigit reports whether the first key of an object may be an index: then
// whether it is printed as an array is for who prints it to say, and it is not
// remembered. Indexes come before all other keys.
func beginsWithDigit(text []byte) bool {
	return len(text) > 2 && '0' <= text[2] && text[2] <= '9'
}

// Text returns what a read shows in a view, nil if that is not known. Nobody may
// change it.
func (m *Memos) Text(k *Key, view uint64) []byte {
	found := m.Listing(k, view)
	switch {
	case !found.Known() || k.Shallow && m.keys.Ended(k.ID, k.Path) > found.memo.view:
		return nil
	case len(found.changes) == 0:
		return found.memo.text
	}
	text, whole := found.AppendTo(make([]byte, 0, found.size()))
	if !whole {
		return nil
	}
	text = append(text, '}')
	m.keep(newMemo(*k, view, text, found.memo.last))
	return text
}

// Size returns how many memos there are, and how many bytes they take and may take.
func (m *Memos) Size() (memos int, bytes, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.Len(), m.bytes, m.limit
}

// Listing returns the memo of a read that is right in a view, with what has changed since if it is a shallow one. Nobody may change it.
func (m *Memos) Listing(k *Key, view uint64) Listing {
	if m.countAt(k).Load() == 0 {
		return Listing{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.all[*k]
	if e == nil {
		return Listing{}
	}
	found := e.Value.(*memo)
	switch {
	case m.isStale(found):
		m.remove(e)
		return Listing{}
	case found.view > view: // the view is an old one
		return Listing{}
	}
	m.order.MoveToFront(e)
	return Listing{found, found.upTo(view)}
}

// isStale reports whether something changed that a memo shows, and that it does not know of.
func (m *Memos) isStale(found *memo) bool {
	k := &found.key
	if !k.Shallow {
		return m.stamps.Of(k.ID, k.Path) > found.view
	}
	return m.keys.Of(k.ID, k.Path) > found.view || m.keys.Single(k.ID, k.Path) > found.amended
}

func (m *Memos) countAt(k *Key) *atomic.Int32 {
	return &m.at[stamp.Hash(k.ID, k.Path)%uint32(len(m.at))]
}

// asked are hashes of reads that came once, the newest first. Those who note one at the same time may lose another: then it is noted
// when it comes again.
type asked [8]atomic.Uint64

// wants reports whether a read is worth to be remembered: it came before, and not
// so long ago that many others came in between.
func (m *Memos) wants(k *Key) bool {
	if m.limit == 0 {
		return false
	}
	hash := maphash.Comparable(m.seed, *k) | 1
	return m.asked[hash>>1%uint64(len(m.asked))].again(hash)
}

// again reports whether a hash, which is not 0, came before, and notes it.
func (a *asked) again(hash uint64) bool {
	for i := range a {
		if a[i].Load() == hash {
			return true
		}
	}
	for i := len(a) - 1; i > 0; i-- {
		a[i].Store(a[i-1].Load())
	}
	a[0].Store(hash)
	return false
}

// Keep remembers what a read shows in a view. It copies the text, and the component of the last key of a shallow read.
func (m *Memos) Keep(k Key, view uint64, text, last []byte) {
	if len(text) <= MaxBytes {
		m.keep(newMemo(k, view, bytes.Clone(text), last))
	}
}

// keep puts a memo in the place of an older one of the same read.
func (m *Memos) keep(kept *memo) {
	if m.limit == 0 || len(kept.text) > MaxBytes {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.all[kept.key]; e != nil {
		if e.Value.(*memo).view >= kept.view {
			return
		}
		m.remove(e)
	}
	m.all[kept.key] = m.order.PushFront(kept)
	m.countAt(&kept.key).Add(1)
	m.shrink(kept.bytes)
}

// grow counts more bytes of a memo.
func (m *Memos) grow(list *memo, bytes int64) {
	list.bytes += bytes
	m.shrink(bytes)
}

// shrink drops memos for others that take so much more.
func (m *Memos) shrink(bytes int64) {
	for m.bytes += bytes; m.bytes > m.limit && m.order.Len() > 0; {
		m.remove(m.order.Back())
	}
}

// Forget drops the memos of a database.
func (m *Memos) Forget(id layout.ID) {
	m.forgetSights(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, e := range m.all {
		if k.ID == id {
			m.remove(e)
		}
	}
}

func (m *Memos) remove(e *list.Element) {
	dropped := m.order.Remove(e).(*memo)
	delete(m.all, dropped.key)
	m.countAt(&dropped.key).Add(-1)
	m.bytes -= dropped.bytes
}

// Stamp returns the number of a view that shows the newest write to what is at p, or of a
// later one: what a view with that number, or a greater one, shows there is still so.
func (m *Memos) Stamp(id layout.ID, p tree.Path) uint64 { return m.stamps.Of(id, p) }
