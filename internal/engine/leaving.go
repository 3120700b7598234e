package engine

import (
	"sync/atomic"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Leaving is what one connection has left to be written when it goes. It changes by
// requests, which have their turn in the order of the database's writes as all others
// have: when one is answered, what it has changed is on disk. Run makes the writes. If the
// process ends before, RunLeft makes them at the next start.
//
// For a connection that leaves nothing, nothing is stored, and its Leaving may be
// forgotten.
type Leaving struct {
	db   *Database
	used atomic.Bool // something was asked for
	// left is replaced at the turn of a request.
	left atomic.Pointer[left]
}

// left is what a connection has left after a request. It does not change.
type left struct {
	list *leave.List
	// name is that of the connection in the store; empty if none was given and there never was
	// a row.
	name string
	who  auth.Identity
	// identity is who as it is stored.
	identity string
	// ended says that the connection has gone: nothing more can be left.
	ended bool
	// spoilt says that there are rows which cannot be read. They stay, and the identity
	// with them.
	spoilt bool
}

// NewLeaving returns what a new connection has left: nothing. Its name is drawn when it leaves
// something, unless it was named.
func (d *Database) NewLeaving() *Leaving {
	l := &Leaving{db: d}
	l.left.Store(&left{list: leave.New(d.writer.limits.Leave)})
	return l
}

// Named gives the connection a name, of layout.ConnectionBytes bytes, which no other has had, and
// returns it. By that RunAgain finds what it has left, also in a later process. It is called
// before anything is left.
func (l *Leaving) Named(connection string) *Leaving {
	named := *l.left.Load()
	named.name = connection
	l.left.Store(&named)
	return l
}

// Bytes returns about how much memory is taken by what is left.
func (l *Leaving) Bytes() int64 { return int64(l.left.Load().list.Bytes()) }

// Later returns the request that leaves a write, whose identity becomes that of the
// connection. It is judged as a write, but no data is written yet. If too much was left
// already, it is refused as fault.TooLarge.
func (l *Leaving) Later(w tree.Write) Request {
	l.used.Store(true)
	p := &parting{of: l, later: true, identifies: true}
	p.change = func(list *leave.List) (*leave.List, error) { return list.With(w) }
	return Request{Write: w, parting: p}
}

// Cancel returns the request that takes back what was left at and below a path; or, for a
// priority, what was left as the priority of the node there.
func (l *Leaving) Cancel(at tree.Path, priority bool) Request {
	p := &parting{of: l}
	p.change = func(list *leave.List) (*leave.List, error) { return list.Without(at, priority) }
	return Request{parting: p}
}

// Identify returns the request by which the connection gets the identity of the request, with
// which the writes are judged when they are made. Later does so, too.
func (l *Leaving) Identify() Request { return Request{parting: &parting{of: l, identifies: true}} }

// A parting is the part of a request that is about what its connection has left.
type parting struct {
	of         *Leaving
	later      bool   // the write is left instead of being made
	identifies bool   // the connection gets the identity of the request
	ends       bool   // nothing more can be left after it
	makes      uint64 // the number of the row whose write the request makes; 0 for none
	// change returns the list after the request. If it is nil, the list stays.
	change func(*leave.List) (*leave.List, error)

	// to is what change has made of the list from, before the turn of the request.
	from, to *leave.List
}

// hasWrite reports whether a request has a write that is to be judged.
func (r *Request) hasWrite() bool { return r.parting == nil || r.parting.later || r.parting.makes > 0 }

// isLater reports whether a request leaves its write instead of making it.
func (r *Request) isLater() bool { return r.parting != nil && r.parting.later }

// heir returns the identity that a request is judged by. A write that was left is judged by the
// identity that its connection had, which does not expire: it was good when the client was last
// heard. If the secret or the key that it rests on was taken away meanwhile, it is nobody's.
func (w *writer) heir(req *Request, settings *state.Settings) auth.Identity {
	if req.parting == nil || req.parting.makes == 0 || w.db.source.Verifier.Holds(req.Who, settings.Credentials(w.db.source.Name)) {
		return req.Who
	}
	return auth.Identity{}
}

// admit refuses what can be refused without looking at what is left.
func (p *parting) admit(s *store.Store, w tree.Write) error {
	switch {
	case p.ends: // nothing is written
		return nil
	case p.makes > 0:
		return s.Admit(w)
	}
	return s.AdmitStep(p.later)
}

// isHeavy reports whether so much was left already that the list is worked out before the turn
// of the request. What a request makes is off the list with little effort.
func (p *parting) isHeavy(list *leave.List, limits *Limits) bool {
	return p.change != nil && p.makes == 0 && (list.Bytes() > limits.HeavyBytes || list.Parts() > limits.HeavyPaths)
}

// prepare works out the list before the turn of the request.
func (p *parting) prepare() (err error) {
	if p == nil || p.change == nil {
		return nil
	}
	p.from = p.of.left.Load().list
	p.to, err = p.change(p.from)
	return err
}
