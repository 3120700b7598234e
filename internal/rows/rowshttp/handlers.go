// Package rowshttp serves package rows over HTTP, to whom its caller has let in: it asks for no
// credential. Handlers are mounted on the admin listener.
//
// Copy and Revert write. Watch, Changes, Denials and Find answer with Server-Sent Events, on the goroutine of the request. Each
// write to a client has a deadline, so that one that does not read ends its stream, and holds
// nothing of the store for longer. The caller bounds how many there are, and ends them by the
// context of the request.
package rowshttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/denials"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/tree"
)

// Route is what requests are counted as.
const Route = "console"

const (
	// maxBody bounds the body of a request: 200 locations of long paths.
	maxBody = 1 << 20
	// gather is how long changes are gathered before they are told.
	gather = 100 * time.Millisecond
	// keepAlive is how often a client is told that the server is there.
	keepAlive = 30 * time.Second
	// writeTime is how long a client may take none of what is sent.
	writeTime = 10 * time.Second
)

// copyShares is how many nodes are copied at a time: each is in memory meanwhile.
var copyShares = shares.Bound{Session: 1, Group: 2, All: 4}

// Options configure Handlers. Now and Logger must be set.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	// MaxCopy is the largest node that is copied, in bytes of its text. Writes is the memory
	// that copies share with all that is written; nil has no bounds.
	MaxCopy int64
	Writes  *budget.Budget
	// Denials lists what rules deny; nil for nothing.
	Denials *denials.Board
	// Past opens a database as it was, until leave is called; nil if there is no archive.
	Past func(ctx context.Context, d *engine.Database, at time.Time) (was *engine.Database, leave func(), err error)
	// Older reads commits that the change log does not hold any more; nil if there is no archive.
	Older rows.Older
}

// Handlers answer requests about the rows of a database.
type Handlers struct {
	opts    Options
	finds   *rows.Finds
	exports exports
	copies  *shares.Shares

	histories *shares.Shares
}

// New returns handlers.
func New(opts Options) *Handlers {
	if opts.Denials == nil {
		opts.Denials = &denials.Board{}
	}
	return &Handlers{
		opts: opts, finds: rows.NewFinds(rows.DefaultFindBound()), exports: exports{all: map[string]export{}},
		copies: shares.New(copyShares), histories: shares.New(historyShares),
	}
}

// EndSession forgets what a session has asked for and not taken.
func (h *Handlers) EndSession(session string) { h.exports.endSession(session) }

// statuses are the answers to each kind of failure; others are answered 500.
var statuses = map[fault.Kind]int{
	fault.Invalid:      http.StatusBadRequest,
	fault.TooLarge:     http.StatusRequestEntityTooLarge,
	fault.NotFound:     http.StatusNotFound,
	fault.Conflict:     http.StatusConflict,
	fault.Precondition: http.StatusPreconditionFailed,
	fault.Unavailable:  http.StatusServiceUnavailable,
	fault.ReadOnly:     http.StatusInsufficientStorage,
}

// fail answers with the public text of an error; the rest goes to the log.
func (h *Handlers) fail(w http.ResponseWriter, err error) {
	status, ok := statuses[fault.KindOf(err)]
	if !ok {
		status = http.StatusInternalServerError
		h.opts.Logger.Error("a request of the console failed", "error", err)
	}
	exchange.Fail(w, status, fault.Public(err))
}

// body reads the JSON body of a request, in which there may be nothing that is not asked for.
func body(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.Wrap(fault.TooLarge, err, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the body is not the JSON object that is expected here")
	}
	return nil
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		exchange.Fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header()["Content-Type"] = exchange.JSONTypes
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // nobody is left to be told
}

// Watch answers POST /v1/databases/{db}/watch with the stream of changed rows.
func (h *Handlers) Watch(w http.ResponseWriter, r *http.Request, db *engine.Database) {
	var req rows.WatchRequest
	err := body(w, r, &req)
	var watcher *rows.Watcher
	if err == nil {
		watcher, err = rows.NewWatcher(db, req, rows.DefaultWatchBound())
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	defer watcher.Close()
	s := h.newStream(w)
	s.run(r, watcher.ID, func() ([]rows.Event, bool, error) {
		events, err := watcher.Look(r.Context().Done())
		return events, false, err
	})
}

// Changes answers GET /v1/databases/{db}/changes with the stream of commits.
func (h *Handlers) Changes(w http.ResponseWriter, r *http.Request, db *engine.Database) {
	query := r.URL.Query()
	under, err := tree.ParsePath(query.Get("under"))
	if err != nil {
		h.fail(w, fault.Wrap(fault.Invalid, err, "under is not a valid path: %v", err))
		return
	}
	changes := rows.NewChanges(db, under, query.Get("since"), rows.DefaultChangeBound())
	s := h.newStream(w)
	s.run(r, changes.ID, func() ([]rows.Event, bool, error) { return changes.Next(h.opts.Now(), r.Context().Done()) })
}

// Denials answers GET /v1/databases/{db}/denials with the stream of requests that rules deny.
// They are noted while somebody looks.
func (h *Handlers) Denials(w http.ResponseWriter, r *http.Request, db *engine.Database) {
	since := uint64(0)
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = strconv.ParseUint(text, 10, 64); err != nil {
			h.fail(w, fault.Wrap(fault.Invalid, err, "since is not the id of a denial"))
			return
		}
	}
	look := h.opts.Denials.Look(db.Epoch(), since)
	defer look.Close()
	id := func() string { return strconv.FormatUint(look.Told(), 10) }
	h.newStream(w).run(r, id, func() ([]rows.Event, bool, error) {
		if err := db.Standing(); err != nil {
			return nil, false, err
		}
		entries, skipped := look.Next()
		var events []rows.Event
		for _, e := range entries {
			events = append(events, rows.Event{Name: "denial", ID: strconv.FormatUint(e.Number, 10), Data: e})
		}
		if skipped > 0 {
			events = append(events, rows.Event{Name: "skipped", Data: map[string]uint64{"requests": skipped}})
		}
		return events, false, nil
	})
}

// Find answers POST /v1/databases/{db}/find with the stream of hits. There is one search at a
// time for a session.
func (h *Handlers) Find(w http.ResponseWriter, r *http.Request, db *engine.Database, who shares.Who) {
	var req rows.FindRequest
	if err := body(w, r, &req); err != nil {
		h.fail(w, err)
		return
	}
	s := h.newStream(w)
	err := h.finds.Find(db, req, who, r.Context().Done(), func(e rows.Event) error { return s.send(e) })
	if err != nil && !s.begun {
		h.fail(w, err)
	}
}

// Copy answers POST /v1/databases/{db}/copy. A session copies one node at a time.
func (h *Handlers) Copy(w http.ResponseWriter, r *http.Request, db *engine.Database, who shares.Who) {
	var req rows.CopyRequest
	err := body(w, r, &req)
	var position uint64
	if err == nil {
		position, err = h.copy(r, db, req, who)
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"at": rows.ID(db.Epoch(), position)})
}

func (h *Handlers) copy(r *http.Request, db *engine.Database, req rows.CopyRequest, who shares.Who) (position uint64, err error) {
	leave, ok := h.copies.Enter(who)
	if !ok {
		return 0, fault.New(fault.Unavailable, "another node is being copied, try again")
	}
	defer leave()
	remote, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero one is an address, too
	claim := h.opts.Writes.Claim(budget.Client{Network: remote.Addr(), Database: db.Name(), Admin: true}, false)
	defer claim.Release()
	req.By = author(who)
	return rows.Copy(r.Context(), db, req, int(h.opts.MaxCopy), claim)
}
