package databases

import (
	"cmp"
	"sync"

	"github.com/livetree/livetree/internal/cluster/record"
)

// What is kept of requests that were answered: so many of them, and so many bytes of what was said.
const (
	maxKnown      = 1 << 16
	maxKnownBytes = 16 << 20
)

// knownOrigins are the requests that were forwarded here, while they are under way and for some time after. One that is sent again is not made
// again. Of one whose answer takes too much only the origin is kept, and whoever asks again is told that the log tells. An origin is given up when there are too
// many. Of those it is known up to which number they were, of each node: what is sent again, and is not after that, may have been made.
type knownOrigins struct {
	mu        sync.Mutex
	most      int // for tests; 0 is maxKnown
	mostBytes int // for tests; 0 is maxKnownBytes
	entries   map[record.Origin]*knownEntry
	old       []record.Origin // that are answered, the oldest first
	told      []*knownEntry   // those of which there is what was said
	bytes     int             // of that
	forgotten map[record.NodeID]span
}

// A span are the numbers of a process up to one, from the one before its first on.
type span struct{ start, length uint64 }

// A knownEntry is one of them. Once done is closed it was answered.
type knownEntry struct {
	done  chan struct{}
	start uint64 // the number before the first of the process
	said  []byte // nil if it was given up
}

// begin returns the entry of a request, and whether it is new. Start is the number before the first of the process that sends it. There is no entry for a request that is sent again and may
// have been made here.
func (k *knownOrigins) begin(o record.Origin, start uint64, isAgain bool) (e *knownEntry, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[o]; e != nil {
		return e, false
	}
	if f, ok := k.forgotten[o.Node]; isAgain && ok && f.start == start && o.Number-start <= f.length {
		return nil, false
	}
	if k.entries == nil {
		k.entries = make(map[record.Origin]*knownEntry)
	}
	e = &knownEntry{done: make(chan struct{}), start: start}
	k.entries[o] = e
	return e, true
}

// end keeps what was said of a request, until there is too much.
func (k *knownOrigins) end(o record.Origin, e *knownEntry, said []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.said = said
	close(e.done)
	k.old, k.told = append(k.old, o), append(k.told, e)
	for k.bytes += len(said); k.bytes > cmp.Or(k.mostBytes, maxKnownBytes); k.told = k.told[1:] {
		k.giveUp(k.told[0])
	}
	for ; len(k.old) > cmp.Or(k.most, maxKnown); k.old = k.old[1:] {
		oldest := k.entries[k.old[0]]
		k.forget(k.old[0], oldest)
		if oldest.said != nil {
			k.giveUp(oldest)
			k.told = k.told[1:] // it is the oldest of these, too
		}
	}
}

// forget gives up an origin. Of a node there may be origins of processes that have ended: nobody sends those again. The lock is held.
func (k *knownOrigins) forget(o record.Origin, e *knownEntry) {
	delete(k.entries, o)
	if k.forgotten == nil {
		k.forgotten = make(map[record.NodeID]span)
	}
	f := k.forgotten[o.Node]
	if f.start != e.start {
		f = span{start: e.start}
	}
	f.length = max(f.length, o.Number-e.start)
	k.forgotten[o.Node] = f
}

// giveUp gives up what was said of a request. The lock is held.
func (k *knownOrigins) giveUp(e *knownEntry) {
	k.bytes -= len(e.said)
	e.said = nil
}

// answer returns what was said of a request that is done: that the log tells, if it was given up.
func (k *knownOrigins) answer(e *knownEntry) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.said == nil {
		return []byte{saysUnknown}
	}
	return e.said
}
