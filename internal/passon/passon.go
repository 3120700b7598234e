// Package passon passes the sessions of SDKs on to the node of a cluster that is the home of their database.
//
// A session writes in the order in which its client does, and leaves writes for when that is gone: both are the home's business. So
// a client may come to any node, and if that is not the home, [Passing] makes a connection to the one that is, over the port of the
// nodes, sends the request there as it came, and carries bytes both ways until either end closes. What it carries, it does not read.
//
// At the home a [Door] takes such connections, for a server of their own. [Identify] has their requests come from the address of the
// client, which the other node says before the request: what a client says of itself is not asked. So limits count for clients
// and not for nodes.
//
// If the home is not known, or not reached in time, the answer is 503, and SDKs try again.
//
// What grows: a connection to the home, two goroutines and 8 KiB for each client that is passed on, and 64 KiB while much is sent.
package passon

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/wire"
)

// Kind is that of the connections between nodes.
const Kind = "session"

const (
	// reachTime is how long a home is tried to be reached, with pauses of reachPause. When one has died, another is there sooner.
	reachTime  = 3 * time.Second
	reachPause = 50 * time.Millisecond
	// retryAfter is the advice to a client that has to try again, in seconds.
	retryAfter = "1"
)

// Options say which sessions are passed on, and how.
type Options struct {
	Hosts   hosts.Hosts
	Catalog *catalog.Catalog
	// Dial makes a connection to the home of a database, and says the body before it.
	Dial func(ctx context.Context, d *engine.Database, body []byte) (net.Conn, error)
	// Answers is the memory that answers take until clients have taken them; nil for no bound.
	Answers *budget.Budget
	Now     func() time.Time
	Logger  *slog.Logger
}

// A Passing passes sessions on. With nil all are served here.
type Passing struct {
	opts   Options
	life   context.Context
	end    context.CancelFunc
	passed atomic.Uint64

	mu      sync.Mutex
	open    map[*carrying]bool
	closed  bool
	carried sync.WaitGroup
}

// New returns a Passing that passes nothing yet.
func New(opts Options) *Passing {
	p := &Passing{opts: opts, open: map[*carrying]bool{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// Stats returns how many websockets are being passed on, and how many requests ever were.
func (p *Passing) Stats() (open int, passed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open), p.passed.Load()
}

// Handler returns a handler that passes on what belongs to another node, and calls next for all else.
func (p *Passing) Handler(next http.Handler) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.Path && r.URL.Path != wire.PollPath {
			next.ServeHTTP(w, r)
			return
		}
		d := p.database(r)
		if d == nil || engine.IsHome(d) {
			next.ServeHTTP(w, r)
			return
		}
		home, err := p.reach(r, d)
		switch {
		case err != nil:
			p.opts.Logger.Debug("the home of a database is not reached", "database", d.Name(), "error", err)
			unavailable(w)
		case home == nil:
			next.ServeHTTP(w, r)
		default:
			p.passed.Add(1)
			p.serve(w, r, home)
		}
	})
}

// database returns the database that a request is for; nil if there is none, which the front says.
func (p *Passing) database(r *http.Request) *engine.Database {
	name, ok := p.opts.Hosts.DatabaseOf(r.URL.Query()["ns"], r.Host)
	if !ok {
		return nil
	}
	d, err := p.opts.Catalog.Database(name)
	if err != nil {
		return nil
	}
	return d
}

// A client is what the home is told of it.
type client struct {
	Remote string `json:"remote"`
	// Host is what a trusted proxy says that the client calls the server; empty without one.
	Host string `json:"host,omitempty"`
}

// maxHost is the longest name of a host that is told.
const maxHost = 300

// reach returns a connection to the home of a database. It returns nil if that is this node by now.
func (p *Passing) reach(r *http.Request, d *engine.Database) (net.Conn, error) {
	who := client{Remote: r.RemoteAddr, Host: clientaddr.ForwardedHost(r)}
	if len(who.Host) > maxHost {
		who.Host = ""
	}
	body, err := json.Marshal(who)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), reachTime)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	for {
		home, err := p.opts.Dial(ctx, d, body)
		if err == nil {
			return home, nil
		}
		if pause.For(ctx, reachPause) != nil {
			return nil, err
		}
		if engine.IsHome(d) {
			return nil, nil
		}
	}
}

// unavailable has a client try again.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	exchange.Fail(w, http.StatusServiceUnavailable, "the node that has the sessions of the database is not reached, try again")
}

// Close ends all that is passed on, and returns when nothing of it is left.
func (p *Passing) Close() {
	if p == nil {
		return
	}
	p.end()
	p.mu.Lock()
	p.closed = true
	var all sync.WaitGroup
	for c := range p.open {
		all.Go(c.close) // TLS says goodbye, which each client can hold up for seconds
	}
	p.mu.Unlock()
	all.Wait()
	p.carried.Wait()
}
