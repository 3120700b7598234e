package rest

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// An Operation is what was done with a database, as firebase-tools wants to hear
// of it.
type Operation struct {
	Database string
	Name     string // one of the constants below, or of package wire
	Path     string // of the URL
	Bytes    int64
	Start    time.Time
	Duration time.Duration
	Denied   bool
	// Index is the index that a query lacked, as rules name it; empty if there was
	// none to lack.
	Index string
}

// valueIndex is the index of values themselves.
const valueIndex = ".value"

// The names of operations.
const (
	OperationRead   = "rest-read"
	OperationWrite  = "rest-write"
	OperationUpdate = "rest-update"
	OperationListen = "listener-listen"
)

// Operations tell those who profile a database what is done with it. While nobody
// does, telling costs next to nothing.
type Operations struct {
	budget   *hub.Budget
	watching atomic.Int64

	mu     sync.Mutex
	topics map[string]*hub.Topic[*watch.Event] // by database
}

// operationBytes is what is kept for those who profile and do not keep up. They
// miss the rest, which is no harm to a statistic.
const operationBytes = 4 << 20

// NewOperations returns operations that nobody profiles yet.
func NewOperations() *Operations {
	return &Operations{
		budget: hub.NewBudget(operationBytes, operationBytes/4),
		topics: make(map[string]*hub.Topic[*watch.Event]),
	}
}

// Watched reports whether somebody profiles a database.
func (o *Operations) Watched() bool { return o.watching.Load() > 0 }

// Record tells of an operation.
func (o *Operations) Record(op Operation) {
	if o.watching.Load() == 0 {
		return
	}
	o.mu.Lock()
	topic := o.topics[op.Database]
	o.mu.Unlock()
	if topic == nil {
		return
	}
	text := op.appendLog(nil)
	e := &watch.Event{Kind: watch.Put, Value: text}
	e.Frame(func(*watch.Event) []byte { return text })
	topic.Publish(hub.Message[*watch.Event]{Message: e, Bytes: len(text) + 100})
	topic.Wake(nil)
}

// appendLog appends the operation as a frame.
func (op Operation) appendLog(dst []byte) []byte {
	dst = append(dst, "event: log\ndata: {\"name\":"...)
	dst = tree.AppendString(dst, op.Name)
	dst = append(dst, `,"path":`...)
	dst = appendPathKeys(dst, op.Path)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), op.Bytes, 10)
	dst = strconv.AppendFloat(append(dst, `,"millis":`...), float64(op.Duration.Microseconds())/1000, 'f', 3, 64)
	dst = append(dst, `,"pendingTime":0`...)
	dst = strconv.AppendInt(append(dst, `,"timestamp":`...), op.Start.UnixMilli(), 10)
	dst = strconv.AppendBool(append(dst, `,"allowed":`...), !op.Denied)
	if op.Index != "" {
		dst = append(dst, `,"unIndexed":true,"querySet":[{"index":{`...)
		if op.Index != valueIndex { // which firebase-tools takes an index without a path for
			dst = appendPathKeys(append(dst, `"path":`...), op.Index)
		}
		dst = append(dst, "}}]"...)
	}
	return append(dst, "}\n\n"...)
}

// appendPathKeys appends the keys of a path as an array.
func appendPathKeys(dst []byte, path string) []byte {
	dst = append(dst, '[')
	for key := range strings.SplitSeq(strings.TrimSuffix(path, suffix), "/") {
		if key == "" {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = tree.AppendString(dst, key)
	}
	return append(dst, ']')
}

// profile answers with a stream of the operations on the database, for the
// operator alone.
func (c *call) profile() error {
	switch {
	case !c.who.Operator:
		return fault.New(fault.Denied, "Permission denied")
	case c.verb != get:
		return errProfileMethod
	case !WantsStream(c.r.Header):
		return fault.New(fault.Invalid, "profile is a stream: send Accept: text/event-stream")
	}
	if err := c.create(); err != nil {
		return err
	}
	if err := c.database.Standing(); err != nil {
		return err
	}
	s := c.newStream()
	if err := c.opts.Streams.Admit(&s.client, outbox.Stream, s); err != nil {
		return err
	}
	s.watch = c.opts.Operations.watch(c.database, c.name, c.who, s.client.Wake)
	return c.open(s)
}

// An operationWatch is somebody who profiles a database.
type operationWatch struct {
	operations   *Operations
	database     *engine.Database
	name         string
	who          auth.Identity
	subscription *hub.Subscription[*watch.Event]
	topic        *hub.Topic[*watch.Event]
	closed       bool
}

func (o *Operations) watch(d *engine.Database, name string, who auth.Identity, wake func()) *operationWatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	topic := o.topics[name]
	if topic == nil {
		topic = hub.NewTopic[*watch.Event](o.budget)
		o.topics[strings.Clone(name)] = topic // the name may be a part of a whole request
	}
	o.watching.Add(1)
	return &operationWatch{operations: o, database: d, name: name, who: who, topic: topic, subscription: topic.Subscribe(wake)}
}

// Drained implements source.
func (w *operationWatch) Drained() bool { return false }

// Next implements source.
func (w *operationWatch) Next() (*watch.Event, bool) {
	for {
		e, state := w.subscription.Next()
		// Behind taking it: the credential must not be told of what was done when it
		// was no longer good.
		if state != hub.Finished && !w.database.Holds(w.who) {
			w.subscription.Cut(&watch.Event{Kind: watch.Revoked})
			e, state = w.subscription.Next()
		}
		switch state {
		case hub.Empty:
			return nil, false
		case hub.Taken, hub.Finished:
			return e, true
		}
	}
}

// Recheck implements source: Next does it.
func (w *operationWatch) Recheck() bool { return true }

// Close implements source.
func (w *operationWatch) Close() {
	o := w.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	w.subscription.Close()
	if w.closed {
		return
	}
	w.closed = true
	o.watching.Add(-1)
	if w.topic.Subscriptions() == 0 && o.topics[w.name] == w.topic {
		delete(o.topics, w.name)
	}
}
