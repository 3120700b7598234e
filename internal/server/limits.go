package server

import (
	"errors"
	"time"

	"github.com/livetree/livetree/internal/store"
)

// Defaults of Limits.
const (
	DefaultMaxConnections = 25_000 // the streams below, and room for requests
	DefaultMaxStreams     = 20_000
	DefaultMaxClients     = 20_000
	DefaultKeepAlive      = 30 * time.Second
	DefaultHeadTimeout    = 10 * time.Second
	DefaultIdleTimeout    = 2 * time.Minute
	DefaultDrainAccept    = 500 * time.Millisecond
	DefaultDrainRequests  = 6 * time.Second
	DefaultLogAge         = time.Hour
	DefaultLogBytes       = 64 << 20
)

// Limits bound what clients can take of the server, but for bodies and the
// cache, which Config has.
type Limits struct {
	// MaxConnections is how many connections are open at a time; more are cut.
	MaxConnections int
	// MaxConnectionsPerAddress is how many of them an address gets when more than half
	// are open; an eighth by default.
	MaxConnectionsPerAddress int
	// OpenFiles is how many files the process may have open, 0 if that is not known.
	// If they are too few, there are fewer connections.
	OpenFiles uint64
	// MaxStreams is how many streams are open at a time. KeepAlive is the time
	// between two signs of life of a stream.
	MaxStreams int
	KeepAlive  time.Duration
	// MaxClients is how many clients of the SDKs are connected at a time; a quarter of
	// them may be such as have neither logged in nor were allowed anything.
	MaxClients int
	// RateLimit is what each client may ask for; by default it is off.
	RateLimit RateLimit

	// HeadTimeout is for reading the request line and the headers, IdleTimeout for
	// a connection without requests.
	HeadTimeout, IdleTimeout time.Duration
	// DrainAccept is how long a server that stops accepts connections,
	// DrainRequests what running requests get after that.
	DrainAccept, DrainRequests time.Duration

	// MemoryLimit is what the garbage collector tries to keep to. By default it is
	// GOMEMLIMIT or, without that, what the other limits add up to.
	MemoryLimit int64
	// LogKeep bounds the change log.
	LogKeep store.LogKeep
}

// check fills in defaults and refuses what cannot be run.
func (l *Limits) check() error {
	setDefault(&l.MaxConnections, DefaultMaxConnections)
	setDefault(&l.MaxStreams, DefaultMaxStreams)
	setDefault(&l.MaxClients, DefaultMaxClients)
	setDefault(&l.KeepAlive, DefaultKeepAlive)
	setDefault(&l.HeadTimeout, DefaultHeadTimeout)
	setDefault(&l.IdleTimeout, DefaultIdleTimeout)
	setDefault(&l.DrainAccept, DefaultDrainAccept)
	setDefault(&l.DrainRequests, DefaultDrainRequests)
	setDefault(&l.LogKeep.Age, DefaultLogAge)
	setDefault(&l.LogKeep.DatabaseBytes, DefaultLogBytes)
	if min(l.MaxConnections, l.MaxConnectionsPerAddress, l.MaxStreams, l.MaxClients, l.RateLimit.Burst) < 0 || l.RateLimit.PerSecond < 0 ||
		min(l.KeepAlive, l.HeadTimeout, l.IdleTimeout, l.DrainAccept, l.DrainRequests, l.LogKeep.Age) < 0 ||
		min(l.MemoryLimit, l.LogKeep.DatabaseBytes, l.LogKeep.StoreBytes) < 0 {
		return errors.New("a limit cannot be negative")
	}
	return nil
}

// serving returns the limits of the HTTP side.
func (l *Limits) serving() servingLimits {
	return servingLimits{
		maxConnections: l.MaxConnections,
		perAddress:     l.MaxConnectionsPerAddress,
		head:           l.HeadTimeout,
		idle:           l.IdleTimeout,
		accept:         l.DrainAccept,
		requests:       l.DrainRequests,
	}
}
