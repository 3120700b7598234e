package wire

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/poll"
)

// Options configure a Front.
type Options struct {
	Catalog *catalog.Catalog
	Logger  *slog.Logger
	// AccessLog, if set, gets a line when a session begins, and one when it ends.
	AccessLog *slog.Logger
	Now       func() time.Time
	// Hosts name the database of a client that does not name it itself.
	Hosts hosts.Hosts
	// Dev is what --dev changes. Create, if set, makes a database that is not there, when a
	// client first asks something of it.
	Dev    dev.Guard
	Create func(ctx context.Context, name string) (*engine.Database, error)
	// Clients holds the open sessions; it may be shared with other fronts.
	Clients *outbox.Clients
	// Rate bounds how often clients ask; nil for no bound.
	Rate Rate
	// Recorder is told of operations; nil for none.
	Recorder Recorder
	// Patience, if set, ends when the server is to end at once: what clients have left is not
	// waited for any more.
	Patience context.Context
	// Postponed writes what clients have left, and what cannot be written when they go.
	Postponed *catalog.Postponed
	// Tenures, in a cluster, say of which databases this node has the sessions.
	Tenures *catalog.Tenures
	// MaxBody is the most bytes of data in one write.
	MaxBody int64
	// MaxContent is the most bytes that a client is sent in one message, 256 MiB by default.
	MaxContent int64
	// MaxMessages is what the messages of all clients may take in memory at a time.
	MaxMessages int64
	// Memory is what clients may take in memory for what they write and read, and what they
	// leave to be written; it may be shared with other fronts. By default it is as for
	// MaxMessages.
	Memory *budget.Memory
}

// maxListens is how many listens all clients may have.
const maxListens = 1_000_000

// messageShare is how much more data may take than the messages that it comes in.
const messageShare = 4

// A Front is all sessions of a server.
type Front struct {
	opts    Options
	began   time.Time
	sdks    sdkCounts
	deeds   deedCounts
	memory  *memory
	listens audience.Crowd
	lines   *poll.Lines // the sessions by long polling

	mu       sync.Mutex
	sessions map[string]*session // by id
}

// New returns a front without sessions.
func New(opts Options) *Front {
	if opts.Rate == nil {
		opts.Rate = noRate{}
	}
	if opts.Patience == nil {
		opts.Patience = context.Background()
	}
	if opts.MaxContent == 0 {
		opts.MaxContent = maxContent
	}
	m := newMemory(opts.MaxMessages)
	if opts.Memory == nil {
		opts.Memory = budget.NewMemory(messageShare * m.limit)
	}
	f := &Front{
		opts: opts, began: opts.Now(), sessions: map[string]*session{}, memory: m,
		lines: poll.New(poll.Options{
			Patience: opts.Clients.Patience,
			Budget:   func(r *http.Request) frame.Budget { return m.of(networkOf(r)) },
			Hold:     func(r *http.Request) (func(), bool) { return exchange.Hold(opts.Memory.Reads, r) },
		}),
	}
	f.listens.Max = maxListens
	return f
}

// Path is where websockets are opened, PollPath where browsers poll.
const (
	Path     = "/.ws"
	PollPath = "/.lp"
)

// Handler returns a handler that answers requests for Path and PollPath, and calls next
// for all others.
func (f *Front) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case Path:
			f.serveSocket(w, r)
		case PollPath:
			f.servePoll(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// idLength is how long the id of a session is.
const idLength = 32

// newID draws the id of a session: 32 letters and digits that nobody can guess.
func newID() string {
	var id strings.Builder
	for id.Len() < idLength {
		text := rand.Text() // of A to Z and 2 to 7, with 130 bits
		id.WriteString(text[:min(len(text), idLength-id.Len())])
	}
	return id.String()
}

// add makes a session known by its id.
func (f *Front) add(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[s.id] = s
}

// remove forgets a session.
func (f *Front) remove(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, s.id)
}

// find returns the session of a database with an id; nil if there is none.
func (f *Front) find(database, id string) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sessions[id]; s != nil && s.name == database {
		return s
	}
	return nil
}

// sdkCounts counts clients by the SDK that they say they are.
type sdkCounts struct {
	mu     sync.Mutex
	counts map[string]uint64
}

// otherSDK counts what is beyond maxSDKs names, which clients make up.
const (
	otherSDK = "other"
	maxSDKs  = 32
)

func (c *sdkCounts) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]uint64{}
	}
	if c.counts[name] == 0 && len(c.counts) >= maxSDKs {
		name = otherSDK
	}
	c.counts[name]++
}

// SDKs returns how many clients said which SDK they are.
func (f *Front) SDKs() map[string]uint64 {
	f.sdks.mu.Lock()
	defer f.sdks.mu.Unlock()
	return maps.Clone(f.sdks.counts)
}
