package server

import (
	"container/list"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/wire"
)

// A RateLimit is what one client may ask for: so many requests per second on
// average, and a burst of so many at once. The zero value is no limit; a Burst of
// 0 is what a second allows.
type RateLimit struct {
	PerSecond float64
	Burst     int
}

// maxClients bounds the clients that a rateLimiter remembers: 5 MiB.
const maxClients = 32 << 10

// A rateLimiter answers 429 to clients that ask too often, before anything else
// is done for them. Clients of the SDKs, who have one connection for many requests, are not
// refused: their requests wait.
//
// A client is a credential or, without one, an address. A credential counts for
// itself only once the handler has found it to be good: until then it counts for
// its address, or else somebody could have as many requests as they can make up
// credentials.
type rateLimiter struct {
	limit RateLimit
	now   func() time.Time
	seed  maphash.Seed

	mu      sync.Mutex
	clients map[wire.Asker]*list.Element
	recent  *list.List // of *allowance, the one used last in front
	most    int
}

// An allowance is what a client may still ask for.
type allowance struct {
	client wire.Asker
	*rate.Limiter
}

func newRateLimiter(limit RateLimit, now func() time.Time) *rateLimiter {
	setDefault(&limit.Burst, max(1, int(math.Ceil(limit.PerSecond))))
	return &rateLimiter{
		limit:   limit,
		now:     now,
		seed:    maphash.MakeSeed(),
		clients: map[wire.Asker]*list.Element{},
		recent:  list.New(),
		most:    maxClients,
	}
}

// wrap returns a handler that calls next for requests within the limit. It stands
// inside of observe, which knows what was answered.
func (l *rateLimiter) wrap(next http.Handler) http.Handler {
	if l.limit.PerSecond == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// It is read as the handler reads it: what that takes for one and the same must not be
		// several clients.
		credential := rest.Credential(r)
		asking, known := l.OfCredential(credential)
		if !known {
			asking = l.address(r)
		}
		if wait := l.Take(asking); wait > 0 {
			refuseRate(w, wait)
			return
		}
		next.ServeHTTP(w, r)
		// A status does not tell: while an issuer cannot be reached, its tokens are
		// neither good nor bad.
		if credential != "" && !known && exchange.Of(w).Identified() {
			asking, _ = l.OfCredential(credential)
			l.Remember(asking)
		}
	})
}

// address returns the client that the address of a request stands for.
func (l *rateLimiter) address(r *http.Request) wire.Asker {
	remote := clientaddr.Of(r)
	if !remote.IsValid() {
		return wire.Asker{Hash: maphash.String(l.seed, r.RemoteAddr)}
	}
	return l.OfNetwork(clientaddr.Network(remote.Addr()))
}

// The requests of the SDKs count with all others.
var _ wire.Rate = (*rateLimiter)(nil)

// OfNetwork implements wire.Rate.
func (l *rateLimiter) OfNetwork(network netip.Addr) wire.Asker {
	return wire.Asker{Hash: maphash.Comparable(l.seed, network)}
}

// OfCredential implements wire.Rate.
func (l *rateLimiter) OfCredential(credential string) (c wire.Asker, known bool) {
	c = wire.Asker{ByCredential: true, Hash: maphash.String(l.seed, credential)}
	l.mu.Lock()
	defer l.mu.Unlock()
	return c, credential != "" && l.clients[c] != nil
}

// Remember implements wire.Rate.
func (l *rateLimiter) Remember(c wire.Asker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allowanceLocked(c)
}

// Take implements wire.Rate: it takes a request from the allowance of a client, or returns
// how long it has to wait for one.
func (l *rateLimiter) Take(c wire.Asker) time.Duration {
	l.mu.Lock()
	a := l.allowanceLocked(c)
	l.mu.Unlock()
	now := l.now()
	r := a.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// allowanceLocked returns the allowance of a client. For a new one the client goes
// that was not heard of for longest; should it come back, it starts afresh.
func (l *rateLimiter) allowanceLocked(c wire.Asker) *allowance {
	if place := l.clients[c]; place != nil {
		l.recent.MoveToFront(place)
		return place.Value.(*allowance)
	}
	if len(l.clients) >= l.most {
		oldest := l.recent.Remove(l.recent.Back()).(*allowance)
		delete(l.clients, oldest.client)
	}
	a := &allowance{c, rate.NewLimiter(rate.Limit(l.limit.PerSecond), l.limit.Burst)}
	l.clients[c] = l.recent.PushFront(a)
	return a
}

// refuseRate answers a client that has to wait.
func refuseRate(w http.ResponseWriter, wait time.Duration) {
	header := w.Header()
	header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	header.Set("Cache-Control", "no-cache")
	header.Set("Access-Control-Allow-Origin", "*") // or else browsers show it as a failure of the network
	exchange.Fail(w, http.StatusTooManyRequests, "too many requests: send the next one after the time in Retry-After")
}
