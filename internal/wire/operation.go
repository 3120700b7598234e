package wire

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/message"
)

// An Operation is what a client has done or was told, for those who profile a database.
type Operation struct {
	Name     string // as the hosted service calls it, such as realtime-write
	SDK      string // one of a few names
	Database string
	Path     tree.Path
	Bytes    int64 // of the data
	Start    time.Time
	Took     time.Duration
	Err      error // why it was refused
}

// A Recorder is told of operations while somebody wants to know of them.
type Recorder interface {
	// Records reports whether somebody does. It is asked for each operation.
	Records() bool
	// Record takes an operation. It must not block.
	Record(o Operation)
}

// A deed is a kind of operation.
type deed uint8

const (
	noDeed deed = iota // it is not told
	connected
	disconnected
	reads
	writes
	updates
	transacts
	listens
	broadcast
	unlistens
	deeds
)

var deedNames = [deeds]string{
	connected: "concurrent-connect", disconnected: "concurrent-disconnect",
	reads: "realtime-read", writes: "realtime-write", updates: "realtime-update", transacts: "realtime-transaction",
	listens: "listener-listen", broadcast: "listener-broadcast", unlistens: "listener-unlisten",
}

// deedOf returns what a request is about.
func deedOf(q *message.Request) deed {
	switch q.Action {
	case message.Get:
		return reads
	case message.Put:
		if q.Hash != nil {
			return transacts
		}
		return writes
	case message.Merge:
		return updates
	case message.Listen:
		return listens
	case message.Unlisten:
		return unlistens
	}
	return noDeed
}

// An sdk is a kind of client: there are few, whatever clients say that they are.
type sdk uint8

const (
	unknownSDK sdk = iota
	browser
	node
	adminNode
	adminJava
	android
	apple
	cpp
	sdks
)

var sdkNames = [sdks]string{
	unknownSDK: "other", browser: "browser", node: "node", adminNode: "admin-node",
	adminJava: "admin-java", android: "android", apple: "apple", cpp: "cpp",
}

// sdkOf returns the SDK that a client is, by its User-Agent: of browsers their own, of
// others Firebase/5/VERSION/SYSTEM/NAME.
func sdkOf(header http.Header) sdk {
	agent := header.Get("User-Agent")
	rest, ok := strings.CutPrefix(agent, "Firebase/5/")
	if !ok {
		if strings.HasPrefix(agent, "Mozilla/") {
			return browser
		}
		return unknownSDK
	}
	_, rest, _ = strings.Cut(rest, "/")
	system, name, _ := strings.Cut(rest, "/")
	switch {
	case name == "Node":
		return node
	case name == "AdminNode":
		return adminNode
	case name == "AdminJava":
		return adminJava
	case name == "Android":
		return android
	case system == "cpp":
		return cpp
	case strings.HasPrefix(name, "iP"), strings.HasPrefix(name, "mac"), strings.HasPrefix(name, "Mac"),
		strings.HasPrefix(name, "Apple"), strings.HasPrefix(name, "Watch"):
		return apple
	}
	return unknownSDK
}

// deedCounts count operations by what they are, and by SDK.
type deedCounts [deeds][sdks]atomic.Uint64

// Operations returns how many operations there were, by name and by SDK.
func (f *Front) Operations() map[string]map[string]uint64 {
	counts := make(map[string]map[string]uint64, deeds)
	for d := connected; d < deeds; d++ {
		bySDK := make(map[string]uint64)
		for s := range f.deeds[d] {
			if n := f.deeds[d][s].Load(); n > 0 {
				bySDK[sdkNames[s]] = n
			}
		}
		counts[deedNames[d]] = bySDK
	}
	return counts
}

// Kinds returns how many clients are connected, by SDK.
func (f *Front) Kinds() map[string]int64 {
	kinds := make(map[string]int64)
	for s := range sdks {
		// Those that leave while this is counted do not make it negative.
		gone := f.deeds[disconnected][s].Load()
		if n := f.deeds[connected][s].Load() - gone; n > 0 {
			kinds[sdkNames[s]] = int64(n)
		}
	}
	return kinds
}

// records reports whether somebody wants to know of operations.
func (f *Front) records() bool { return f.opts.Recorder != nil && f.opts.Recorder.Records() }

// A ledger counts what a client does.
type ledger struct {
	front *Front
	name  string    // of the database
	sdk   sdk       // what the client says that it is
	since time.Time // when it began; zero before
}

// did counts an operation of the client that takes no time.
func (l *ledger) did(d deed, p tree.Path, bytes int) {
	l.front.deeds[d][l.sdk].Add(1)
	if l.front.records() {
		l.record(d, &Operation{Path: p, Bytes: int64(bytes), Start: l.front.opts.Now()}, 0, nil)
	}
}

// expect returns the operation that a request is about to be, if somebody wants to know.
func (l *ledger) expect(q *message.Request) *Operation {
	if deedOf(q) == noDeed || !l.front.records() {
		return nil
	}
	return &Operation{Path: q.Path.Clone(), Bytes: int64(len(q.Data)), Start: l.front.opts.Now()}
}

// finish counts the operation that a request was, when it is answered. The bytes are what
// the client was sent for it.
func (l *ledger) finish(was *asked, bytes int64, err error) {
	if was.deed == noDeed {
		return
	}
	l.front.deeds[was.deed][l.sdk].Add(1)
	if was.operation != nil {
		l.record(was.deed, was.operation, bytes, err)
	}
}

// record tells of an operation that is over.
func (l *ledger) record(d deed, o *Operation, bytes int64, err error) {
	o.Name, o.SDK, o.Database = deedNames[d], sdkNames[l.sdk], l.name
	o.Took = l.front.opts.Now().Sub(o.Start)
	o.Bytes += bytes
	o.Err = err
	l.front.opts.Recorder.Record(*o)
}

// begun counts a client that has come.
func (l *ledger) begun() {
	l.since = l.front.opts.Now()
	l.did(connected, tree.Path{}, 0)
}

// gone counts a client that has begun and gone.
func (l *ledger) gone() {
	if l.since.IsZero() {
		return
	}
	l.front.deeds[disconnected][l.sdk].Add(1)
	if l.front.records() {
		l.record(disconnected, &Operation{Start: l.since}, 0, nil)
	}
}

// printed counts what the client is about to be sent: the first data of a listen, or that
// of a read, which is over with it.
func (l *ledger) printed(say *saying, bytes int64, err error) {
	switch {
	case say.answers != nil:
		l.finish(say.answers, bytes, err)
	case say.listen != nil && cookie(say.listen).answered:
		l.did(broadcast, say.listen.Path, int(bytes))
	case say.listen != nil:
		cookie(say.listen).sent = bytes
	}
}

// sent returns how many bytes of data the client was sent for a request.
func (a *asked) sent() int64 {
	if a.listen == nil {
		return 0
	}
	return a.listen.sent
}
