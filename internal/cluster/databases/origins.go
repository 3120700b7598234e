package databases

import (
	"sync"

	"github.com/livetree/livetree/internal/cluster/record"
)

// What is kept of requests that were answered.
const (
	maxKnown      = 1 << 16
	maxKnownBytes = 16 << 20
)

// knownOrigins are the requests that were forwarded here, while they are under way and for some time after.
type knownOrigins struct {
	mu      sync.Mutex
	entries map[record.Origin]*knownEntry
	old     []record.Origin // that are answered, the oldest first
	bytes   int             // of what was said of them
}

// A knownEntry is one of them. What was said is there when done is closed.
type knownEntry struct {
	done chan struct{}
	said []byte
}

// begin returns the entry of a request, and whether it is new.
func (k *knownOrigins) begin(o record.Origin) (e *knownEntry, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[o]; e != nil {
		return e, false
	}
	if k.entries == nil {
		k.entries = make(map[record.Origin]*knownEntry)
	}
	e = &knownEntry{done: make(chan struct{})}
	k.entries[o] = e
	return e, true
}

// end keeps what was said of a request, until there are too many.
func (k *knownOrigins) end(o record.Origin, e *knownEntry, said []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.said = said
	close(e.done)
	k.old = append(k.old, o)
	for k.bytes += len(said); len(k.old) > maxKnown || k.bytes > maxKnownBytes && len(k.old) > 1; k.old = k.old[1:] {
		k.bytes -= len(k.entries[k.old[0]].said)
		delete(k.entries, k.old[0])
	}
}
