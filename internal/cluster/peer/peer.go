// Package peer is the wire between the nodes of a cluster: the key by which they know each other, the one port on which
// each of them is reached, and the calls that they make.
//
// A [Key] is what all nodes of a cluster share. An authority is worked out of it, the same on every node, and each
// node issues itself a certificate. Whoever has the key is a node; nobody else gets further than the handshake.
//
// A [Front] has the port for the life of the process. It reads the first message of each connection. If that asks for
// the protocol of this package, the front serves it; all else is handed to
// etcd ([Front.PassTo]), which asks for the same certificates. A node that has no key yet may ask for it with an invitation, a
// [Code], which is good once: see invite.go.
//
// A node makes calls over one connection of its own to each peer that it keeps ([Front.Keep]), many at a time. Bodies are cut
// into parts, so that a large one holds up neither the others nor the pings. A copy of much data has a
// connection to itself ([Front.Open]). So has a client of one node that is served by another ([Front.Dial]): such a
// connection is a pipe, which carries bytes both ways as they come.
//
// A connection on which nothing arrives for a second is closed: both ends send something five times
// as often. A pipe carries nothing of its own; it ends with the connection for calls to the same node. What arrives is counted in ticks of this process, not by the clock, so a process that stood still does
// not take its peers for dead.
//
// A call that fails says what is known of it: [ErrNotSent] if no handler has seen it or ever will, [ErrLost] if one may
// have, and [Refused] with the handler's own error.
//
// What grows: three goroutines for each connection, none for a pipe, and one for each call that is answered. Connections, calls, and the bytes of
// bodies under way are bounded, see [Options].
package peer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Protocol is what a connection asks for in its handshake to be served by this package.
const Protocol = "livetree-peer/1"

var (
	// ErrNotSent says that no handler of the peer has seen a call, or ever will.
	ErrNotSent = errors.New("the call was not sent")
	// ErrLost says that the peer may have handled a call, or may still do so: its answer was lost, or was not waited for.
	ErrLost = errors.New("the outcome of the call is not known")
	// ErrClosed says that the front is closed.
	ErrClosed = errors.New("this node's front is closed")
)

// Refused is the error that the handler of a call returned.
type Refused struct{ Text string }

func (r *Refused) Error() string { return r.Text }

// A Handler answers calls of a kind. Its context ends when the caller gives up or is gone. The body is its own.
type Handler func(ctx context.Context, from string, body []byte) ([]byte, error)

// A StreamHandler answers with as many bytes as it writes.
type StreamHandler func(ctx context.Context, from string, body []byte, w io.Writer) error

// Options say how a front works. All but Addr and Key may be left out.
type Options struct {
	// Addr is where the other nodes reach this one, and its name. Empty is where it listens.
	Addr string
	// Listen is where the front listens; Addr if empty.
	Listen string
	Key    Key
	// Dir is where the certificates lie for etcd, which takes them only as files. Empty: nowhere.
	Dir string

	// Ping is how often something is sent over each connection, 200 ms; one on which nothing arrives in the time
	// of five pings is closed.
	Ping time.Duration
	// MaxBody is how long the body of a call or an answer may be, 1 MiB, and MaxBodies how much all
	// that are received take together.
	MaxBody   int
	MaxBodies int64
	// MaxCalls is how many calls to, or from, one peer may be under way.
	MaxCalls int
	// MaxStreams is how many streams are served at a time.
	MaxStreams int
	// MaxPipes is how many pipes may be open at a time, 65,536: those of this node, and as many of others.
	MaxPipes int

	// Now is the clock of this node.
	Now    func() time.Time
	Logger *slog.Logger

	hello time.Duration // helloTime, but in tests
}

// What is used where Options say nothing, and what cannot be set.
const (
	defaultPing       = 200 * time.Millisecond
	defaultMaxBody    = 1 << 20
	defaultMaxBodies  = 64 << 20
	defaultMaxCalls   = 1024
	defaultMaxStreams = 4
	defaultMaxPipes   = 1 << 16
	largestBody       = 300 << 20

	// quietPings is how many pings may pass without anything arriving.
	quietPings = 5
	// quietStreamPings is the same for a stream, whose other end may have to wait for its disk.
	quietStreamPings = 50
	// helloTime and helloBytes bound the first message of a connection.
	helloTime  = 5 * time.Second
	helloBytes = 64 << 10
	// maxStrangers is how many connections may be in their handshake, maxStrangersOfHost those of one host.
	maxStrangers       = 256
	maxStrangersOfHost = 64
	// maxPeerConns and maxPassed bound the connections that are served and passed on, and those of one host.
	maxPeerConns       = 256
	maxPeerConnsOfHost = 64
	maxPassed          = 512
	maxPassedOfHost    = 128
	// maxKnown is how many hosts are remembered from which nodes have come.
	maxKnown = 256
	// answerBytes is how much the other end of a passed connection sends at least, in the time of a first message, to
	// complete its handshake: a certificate alone is longer.
	answerBytes = 256
	// bodiesShare is the part of all bodies that one connection gets.
	bodiesShare = 4
	// maxPeers is how many peers are kept.
	maxPeers = 64
	// maxText is how long the text of an error may be.
	maxText = 4 << 10
)

func (o Options) withDefaults() (Options, error) {
	o.Ping = cmp.Or(o.Ping, defaultPing)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.MaxBodies = max(cmp.Or(o.MaxBodies, defaultMaxBodies), 2*int64(o.MaxBody))
	o.MaxCalls = cmp.Or(o.MaxCalls, defaultMaxCalls)
	o.MaxStreams = cmp.Or(o.MaxStreams, defaultMaxStreams)
	o.MaxPipes = cmp.Or(o.MaxPipes, defaultMaxPipes)
	o.Listen = cmp.Or(o.Listen, o.Addr)
	o.hello = cmp.Or(o.hello, helloTime)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // what is used where no clock is given
	}
	switch {
	case len(o.Key.seeds) == 0:
		return o, errors.New("a front without the cluster's key")
	case o.MaxBody < 0 || o.MaxBody > largestBody:
		return o, errors.New("calls between nodes may have 300 MiB at most")
	}
	return o, nil
}
