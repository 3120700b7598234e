package rest

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
)

// This file says how new what a node of a cluster shows has to be. A single server shows everything.

// A Consistency says how new what is read has to be.
type Consistency string

// How new what is read has to be.
const (
	// Linearizable shows everything that was acknowledged before the request, by whatever node.
	Linearizable Consistency = "linearizable"
	// Local shows what this node has.
	Local Consistency = "local"
)

// The headers of a cluster. They are only looked at, and sent, with Options.Reads.
const (
	consistencyHeader = "X-Livetree-Consistency"
	minimumHeader     = "X-Livetree-Min-Position"
	positionHeader    = "X-Livetree-Position"
	consistencyParam  = "consistency"
)

// agreeTime is how long a read waits for the other nodes, or for a position.
const agreeTime = 10 * time.Second

// await returns when this node may show what is asked for, but for a position that the request may name: awaitPosition
// sees to that, when it is known who asks.
func await(c *call) (fresh Consistency, err error) {
	if c.opts.Reads == "" || c.database == nil {
		return "", nil
	}
	if fresh, err = wanted(c); err != nil {
		return "", err
	}
	if !c.verb.reads() {
		return "", nil // the node that judges a write has everything
	}
	if fresh == Linearizable {
		return fresh, awaitOthers(c)
	}
	return fresh, nil
}

// awaitOthers returns when this node has everything. The request counts as an answer that is under way meanwhile, and then no more:
// it is not known yet who asks, and administrators do not share what their address has.
func awaitOthers(c *call) error {
	if err := c.usage.chargeWaiting(); err != nil {
		return err
	}
	defer c.usage.release()
	return engine.AwaitWithin(c.r.Context(), c.database, agreeTime)
}

// one returns the first value of a header whose name is in canonical form.
func one(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// wanted returns how new what is read has to be.
func wanted(c *call) (Consistency, error) {
	given := one(c.r.Header, consistencyHeader)
	if list := c.given.texts(consistencyParam); len(list) == 1 {
		c.given = slices.DeleteFunc(c.given, func(v value) bool { return v.name == consistencyParam })
		if given == "" {
			given = list[0]
		}
	}
	switch wanted := Consistency(given); wanted {
	case "":
		return c.opts.Reads, nil
	case Linearizable, Local:
		return wanted, nil
	}
	return "", fault.New(fault.Invalid, "the consistency is %.40q: it must be %s or %s", given, Linearizable, Local)
}

// A position is looked for after firstPause, and then less and less often, up to lastPause: whoever waits for one that
// never comes is to cost little.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 128 * time.Millisecond
)

// farAhead is more than any node that answers is behind. What is beyond is no position of this database.
const farAhead = 1 << 32

// awaitPosition returns when this node has the position that a request for a local read names. The request counts as an
// answer that is under way meanwhile.
func awaitPosition(c *call, fresh Consistency) error {
	text := one(c.r.Header, minimumHeader)
	if fresh != Local || text == "" {
		return nil // most local reads name none: they are to cost what they do on a single server
	}
	epoch, position, ok := parseID(text)
	here := c.database.Published().Position
	if !ok || epoch != c.database.Epoch() || position > here && position-here > farAhead {
		return fault.New(fault.Invalid, "%s is %.60q: it must be what %s said for this database", minimumHeader, text, positionHeader)
	}
	if here >= position {
		return nil
	}
	if err := c.usage.chargeAnswer(c.usage.waitingBytes(), true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), agreeTime)
	defer cancel()
	for next := firstPause; c.database.Published().Position < position; next = min(2*next, lastPause) {
		if err := pause.For(ctx, next); err != nil {
			return fault.Wrap(fault.Unavailable, err, "this node is behind position %d, try again", position)
		}
	}
	return c.identify() // a secret may have gone meanwhile
}

// showPosition says which commit an answer shows, or a later one.
func (c *call) showPosition() {
	if c.opts.Reads != "" && c.database != nil {
		c.w.Header()[positionHeader] = []string{string(appendPosition(nil, c.database.Epoch(), c.database.Published().Position))}
	}
}

// sharedHeaders are the headers of answers that pages may read, in a cluster.
var sharedHeaders = []string{"ETag, " + positionHeader}

// exposed returns the headers of answers that pages may read.
func (h *Handler) exposed() []string {
	if h.opts.Reads != "" {
		return sharedHeaders
	}
	return exposedHeaders
}

// allowed returns the headers that pages may send.
func (h *Handler) allowed() string {
	if h.opts.Reads != "" {
		return allowedHeaders + ", x-livetree-consistency, x-livetree-min-position"
	}
	return allowedHeaders
}
