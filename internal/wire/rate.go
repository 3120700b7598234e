package wire

import (
	"context"
	"net/netip"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// A Rate bounds how often clients ask, by all fronts together.
type Rate interface {
	// OfNetwork returns whom requests without a credential count for.
	OfNetwork(network netip.Addr) Asker
	// OfCredential returns whom requests with a credential count for, and whether it was
	// found to be good. Until then they count for the network.
	OfCredential(credential string) (a Asker, isGood bool)
	// Remember says that the credential of an asker was found to be good.
	Remember(a Asker)
	// Take takes one request from what an asker may ask for. If there is none, it returns
	// how long it takes until there is.
	Take(a Asker) time.Duration
}

// An Asker is whom requests count for: the hash of a credential or of a network.
type Asker struct {
	ByCredential bool
	Hash         uint64
}

// noRate bounds nothing.
type noRate struct{}

func (noRate) OfNetwork(netip.Addr) Asker        { return Asker{} }
func (noRate) OfCredential(string) (Asker, bool) { return Asker{}, true }
func (noRate) Remember(Asker)                    {}
func (noRate) Take(Asker) time.Duration          { return 0 }

// A pace is how fast the requests of a session are taken. It belongs to the goroutine that
// calls receive.
type pace struct {
	rate    Rate
	network Asker
	now     Asker // whom requests count for; the network until a login
}

func newPace(rate Rate, network netip.Addr) pace {
	of := rate.OfNetwork(network)
	return pace{rate: rate, network: of, now: of}
}

// asker returns whom a request counts for. A login counts for the credential that it
// brings, if that was good before: so one that fails counts for the network.
func (p *pace) asker(q *message.Request) Asker {
	if q.Action != message.Login {
		return p.now
	}
	if a, isGood := p.rate.OfCredential(q.Credential); isGood {
		return a
	}
	return p.network
}

// take takes what is left of some requests. If there is not enough, it returns how long it takes
// until there is more.
func (p *pace) take(a Asker, left *int) (wait time.Duration) {
	for *left > 0 && wait <= 0 {
		if wait = p.rate.Take(a); wait <= 0 {
			*left--
		}
	}
	return wait
}

// loggedIn has requests count for a credential that is good.
func (p *pace) loggedIn(credential string) {
	a, isGood := p.rate.OfCredential(credential)
	if !isGood {
		p.rate.Remember(a)
	}
	p.now = a
}

// loggedOut has requests count for the network again.
func (p *pace) loggedOut() { p.now = p.network }

// leastPause and mostPause bound the time between two looks whether there is room for a
// request, when others of the same asker take it: each look waits longer, so that a thousand
// who wait take no processor.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// turnWait is how long a request waits for its turn. What it came in is in memory meanwhile.
const turnWait = 30 * time.Second

// judgedAtOnce is how many listens are judged again for what one request counts.
const judgedAtOnce = 64

// countOf returns for how many requests one counts: with a login, or its end, all listens of the
// client are judged again.
func countOf(s *session, q *message.Request) int {
	if (q.Action == message.Login || q.Action == message.Logout) && s.joined.Load() {
		return 1 + s.audience.Listens()/judgedAtOnce
	}
	return 1
}

// awaitTurn waits until a request may be served. Nothing more is read from the client
// meanwhile, so it notices by its own writes. It is not noticed then that the client has gone.
// It reports false if the request is not served: the session has ended, or ends because the wait
// took too long. An SDK comes back then, later each time, and asks again; an answer that
// refuses would be the end of a listen, or of a write.
func (s *session) awaitTurn(q *message.Request) bool {
	asker, left := s.pace.asker(q), countOf(s, q)
	wait := s.pace.take(asker, &left)
	if wait <= 0 {
		return true
	}
	s.waits.Store(true)
	defer s.waits.Store(false)
	ctx, cancel := context.WithTimeout(s.ctx, turnWait)
	defer cancel()
	for again := leastPause; wait > 0; again = min(2*again, mostPause) {
		if pause.For(ctx, wait) != nil {
			if s.ctx.Err() == nil {
				s.stop()
				s.close(frame.CodePolicy, outbox.Behind, "too many requests, try again later")
			}
			return false
		}
		if wait = s.pace.take(asker, &left); wait > 0 {
			wait = max(wait, again)
		}
	}
	return true
}
