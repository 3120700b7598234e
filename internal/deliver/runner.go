package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
)

// Databases finds databases: a catalog.
type Databases interface {
	Database(name string) (*engine.Database, error)
	// WithHooks calls yield with the names of all databases that have hooks.
	WithHooks(yield func(name string)) error
}

// Limits bound what is done at a time. A server has those of DefaultLimits, but for those that are flags.
type Limits struct {
	InFlight  int           // deliveries of one hook under way
	Total     int           // of all hooks
	Bytes     int64         // of the notices of those
	Window    int           // deliveries of one hook that were read and are not done
	Share     int           // of those, of one location
	Late      int           // locations of one hook that have more than that; further ones are held as the others
	Recent    int           // deliveries of one hook to look at
	KeptBytes int64         // of the notices of one hook that are kept to be sent again on request
	Spool     int64         // of all notices that are not delivered, on disk
	Save      time.Duration // how often it is stored how far hooks are
	Attempt   time.Duration // that one takes at most
	RetryFor  time.Duration // until a delivery is given up
	Pause     time.Duration // before the second attempt; it doubles
	MaxPause  time.Duration // of a delivery; that of a whole hook is a tenth
}

// Defaults of two limits that are flags.
const (
	DefaultSpool    = 1 << 30
	DefaultRetryFor = 24 * time.Hour
)

// DefaultLimits are those of a server.
func DefaultLimits() Limits {
	return Limits{
		InFlight: maxInFlight, Total: 256, Bytes: 64 << 20, Window: 1024, Share: 16, Late: 32, Recent: 200, KeptBytes: 4 << 20, Spool: DefaultSpool,
		Save: 100 * time.Millisecond, Attempt: maxAttempt, RetryFor: DefaultRetryFor, Pause: time.Second, MaxPause: 10 * time.Minute,
	}
}

// Options configure a Runner. All but Transport must be set.
type Options struct {
	Databases Databases
	Guard     *Guard
	Now       func() time.Time
	// Elapsed is a clock that is never set, such as the time since the start, by Now by default. Pauses are measured by it.
	Elapsed func() time.Duration
	Logger  *slog.Logger
	Limits  Limits
	// Transport makes requests, by the guard by default.
	Transport http.RoundTripper
}

// A Runner delivers for all hooks of a server. Hooked may be called before Run.
type Runner struct {
	opts   Options
	client *http.Client
	slots  slots
	bytes  atomic.Int64 // of all notices that are stored and not delivered
	count  atomic.Int64 // of queues
	shed   sync.Mutex   // held by the queue that drops notices

	changed chan struct{} // there are other hooks, or too many bytes

	mu      sync.RWMutex
	dirty   map[string]bool // names of databases whose hooks are to be looked at
	bases   map[string]*base
	epochs  map[uint64]*base // the same
	running sync.WaitGroup   // goroutines of bases
}

// New returns a runner.
func New(opts Options) *Runner {
	if opts.Transport == nil {
		opts.Transport = opts.Guard.transport(opts.Limits.Total)
	}
	if opts.Elapsed == nil {
		began := opts.Now()
		opts.Elapsed = func() time.Duration { return opts.Now().Sub(began) }
	}
	r := &Runner{
		opts: opts, changed: make(chan struct{}, 1), dirty: make(map[string]bool), bases: make(map[string]*base), epochs: make(map[uint64]*base),
		slots: slots{count: opts.Limits.Total, maxBytes: opts.Limits.Bytes},
		client: &http.Client{
			Transport:     opts.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	return r
}

// Hooked is told what happens in databases: see state.Observers.
func (r *Runner) Hooked(database string, epoch uint64, told []hook.Mark) {
	r.mu.RLock()
	b := r.epochs[epoch]
	r.mu.RUnlock()
	if b == nil || len(told) == 0 {
		r.look(database)
		return
	}
	for _, mark := range told {
		if q := b.queue(mark.Hook); q != nil {
			q.noted(mark)
		} else {
			r.look(database)
		}
	}
	if r.excess() > 0 {
		r.signal()
	}
}

// look has the hooks of a database looked at.
func (r *Runner) look(database string) {
	r.mu.Lock()
	r.dirty[database] = true
	r.mu.Unlock()
	r.signal()
}

func (r *Runner) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends, and then stores how far each hook is.
func (r *Runner) Run(ctx context.Context) {
	err := r.opts.Databases.WithHooks(func(name string) {
		r.mu.Lock()
		r.dirty[name] = true
		r.mu.Unlock()
	})
	if err != nil {
		r.opts.Logger.Error("not all databases can be listed: the hooks of others deliver when something is written", "error", err)
	}
	r.signal()
	for {
		select {
		case <-r.changed:
			r.reconcile(ctx)
			r.relieve()
		case <-ctx.Done():
			r.running.Wait()
			return
		}
	}
}

// reconcile has queues for the hooks that there are, in the databases that are to be looked at.
func (r *Runner) reconcile(ctx context.Context) {
	r.mu.Lock()
	dirty := r.dirty
	r.dirty = make(map[string]bool)
	r.mu.Unlock()
	for name := range dirty {
		if ctx.Err() != nil {
			return
		}
		d, err := r.opts.Databases.Database(name)
		if err == nil {
			err = d.Standing() // one that was dropped just now may still be found
		}
		switch {
		case err == nil && !engine.IsHome(d): // its home delivers
			r.forget(name)
		case err == nil:
			r.baseOf(ctx, d).reconcile(engine.Hooks(d))
		case fault.KindOf(err) == fault.NotFound:
			r.forget(name)
		default:
			r.opts.Logger.Error("the hooks of a database do not deliver: it cannot be opened", "database", name, "error", err)
		}
	}
}

// baseOf returns what delivers for a database; it is made if there is none.
func (r *Runner) baseOf(ctx context.Context, d *engine.Database) *base {
	r.mu.RLock()
	b := r.bases[d.Name()]
	r.mu.RUnlock()
	if b != nil && b.epoch == d.Epoch() {
		return b
	}
	r.forget(d.Name())
	b = newBase(ctx, r, d)
	r.mu.Lock()
	r.bases[b.name], r.epochs[b.epoch] = b, b
	r.mu.Unlock()
	r.running.Go(b.save)
	return b
}

// forget stops delivering for a database that was dropped.
func (r *Runner) forget(name string) {
	r.mu.Lock()
	b := r.bases[name]
	if b != nil {
		delete(r.bases, name)
		delete(r.epochs, b.epoch)
	}
	r.mu.Unlock()
	if b != nil {
		b.reconcile(nil)
		b.stop()
	}
}

// relieve has the queue with the most that is not delivered drop some, if there is too much in all.
func (r *Runner) relieve() {
	if r.excess() <= 0 {
		return
	}
	var largest *queue
	most := int64(0)
	for _, q := range r.queues() {
		if _, bytes := q.tally.sum(); bytes > most {
			largest, most = q, bytes
		}
	}
	if largest != nil {
		largest.do(largest.drop)
	}
}

// excess is by how many bytes too much is stored.
func (r *Runner) excess() int64 { return r.bytes.Load() - r.opts.Limits.Spool }

// maxKept is how many bytes of notices that are delivered a queue may keep. All together have a quarter of the spool.
func (r *Runner) maxKept() int64 {
	return min(r.opts.Limits.KeptBytes, r.opts.Limits.Spool/4/max(r.count.Load(), 1))
}

// queues returns those of all hooks.
func (r *Runner) queues() (all []*queue) {
	r.mu.RLock()
	bases := make([]*base, 0, len(r.bases))
	for _, b := range r.bases {
		bases = append(bases, b)
	}
	r.mu.RUnlock()
	for _, b := range bases {
		all = append(all, b.list()...)
	}
	return all
}

// jitter returns a time of about a wait: from three quarters of it to five.
func jitter(wait time.Duration) time.Duration {
	return wait*3/4 + time.Duration(rand.Int64N(int64(wait)/2+1)) //nolint:gosec // no secret
}
