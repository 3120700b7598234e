package rowshttp

import (
	"compress/gzip"
	"crypto/rand"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// exportTime is within which time a download must begin.
	exportTime = time.Minute
	// sessionExports is how many downloads of one session may wait to begin, groupExports how
	// many of all sessions of a database, or of the operator, and otherExports of all but the
	// operator's.
	sessionExports = 8
	groupExports   = 16
	otherExports   = 48
	// downloadBytes is how much of a download is gathered before it is sent.
	downloadBytes = 64 << 10
)

// ExportsPath is below what path downloads are; the rest of it is the token.
const ExportsPath = "/v1/exports/"

// An export is a download that was asked for.
type export struct {
	database *engine.Database
	path     tree.Path
	gzip     bool
	who      shares.Who
	admit    Admit
	until    time.Time
}

// An Admit has a request made for a session, with which it ends. It reports false, and does
// not call next, if the session has ended.
type Admit func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) bool

// exports are the downloads that have not begun, by token.
type exports struct {
	mu  sync.Mutex
	all map[string]export
}

// add notes a download and returns its token; false if too many wait.
func (x *exports) add(e export, now time.Time) (token string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var ofSession, ofGroup, ofOthers int
	for token, waiting := range x.all {
		if now.After(waiting.until) {
			delete(x.all, token)
			continue
		}
		ofSession += one(waiting.who == e.who)
		ofGroup += one(waiting.who.Group == e.who.Group)
		ofOthers += one(waiting.who.Group != "")
	}
	if ofSession >= sessionExports || ofGroup >= groupExports || e.who.Group != "" && ofOthers >= otherExports {
		return "", false
	}
	token = rand.Text()
	x.all[token] = e
	return token, true
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// take returns a download, once.
func (x *exports) take(token string, now time.Time) (export, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.all[token]
	delete(x.all, token)
	return e, ok && !now.After(e.until)
}

func (x *exports) endSession(session string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for token, e := range x.all {
		if e.who.Session == session {
			delete(x.all, token)
		}
	}
}

// Export answers POST /v1/databases/{db}/exports with the URL of a download, which is good once
// and for a minute, while the session stands. A browser loads it without a credential.
func (h *Handlers) Export(w http.ResponseWriter, r *http.Request, db *engine.Database, who shares.Who, admit Admit) {
	var req struct {
		Path string `json:"path"`
		Gzip bool   `json:"gzip"`
	}
	err := body(w, r, &req)
	var path tree.Path
	if err == nil {
		if path, err = tree.ParsePath(req.Path); err != nil {
			err = fault.Wrap(fault.Invalid, err, "path is not valid: %v", err)
		}
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	now := h.opts.Now()
	token, ok := h.exports.add(export{db, path.Clone(), req.Gzip, who, admit, now.Add(exportTime)}, now)
	if !ok {
		h.fail(w, fault.New(fault.Unavailable, "too many downloads wait to begin, try again"))
		return
	}
	answer(w, http.StatusCreated, map[string]string{"url": ExportsPath + token})
}

// Download answers GET /v1/exports/{token}, which needs no credential but the token. It ends
// with the session that has asked for it.
func (h *Handlers) Download(w http.ResponseWriter, r *http.Request) {
	e, ok := h.exports.take(r.PathValue("token"), h.opts.Now())
	if !ok || !e.admit(w, r, func(w http.ResponseWriter, r *http.Request) { h.download(w, r, e) }) {
		h.fail(w, fault.New(fault.NotFound, "there is no such download: it is good once, and for a minute"))
	}
}

// download sends an export.
func (h *Handlers) download(w http.ResponseWriter, r *http.Request, e export) {
	v := e.database.View()
	v.Until(r.Context().Done())
	turn := v.Node(e.path, 0).Pool.NewTurn()
	printer, err := v.Printer(e.path, tree.Export)
	v.Close() // a printer needs no view
	if err != nil {
		h.fail(w, err)
		return
	}
	defer func() { _ = printer.Close() }()
	w.Header()["Content-Disposition"] = []string{mime.FormatMediaType("attachment", map[string]string{"filename": e.fileName()})}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if e.gzip {
		w.Header().Set("Content-Type", "application/gzip")
	}
	out := &download{stream: h.newStream(w), begin: func() error { return turn.Begin(r.Context().Done()) }, end: turn.End}
	defer turn.End()
	if err := state.PrintError(e.print(printer.PrintTo, out)); err != nil {
		panic(http.ErrAbortHandler) // the client must not take what it has for the whole
	}
}

// fileName names the file after the node.
func (e export) fileName() string {
	name := "export"
	if last := e.path.Last(); last != "" {
		name = last
	}
	if e.gzip {
		return name + ".json.gz"
	}
	return name + ".json"
}

// print prints the node into the download.
func (e export) print(printTo func(io.Writer) error, out *download) error {
	var w io.Writer = out
	var compressor *gzip.Writer
	if e.gzip {
		compressor = gzip.NewWriter(out)
		w = compressor
	}
	if err := out.begin(); err != nil {
		return err
	}
	if err := printTo(w); err != nil {
		return err
	}
	if compressor != nil {
		if err := compressor.Close(); err != nil {
			return err
		}
	}
	return out.flush()
}

// A download gathers text and sends it in pieces. It has a turn while it is printed, and gives
// it up while its client takes a piece. A client must take it at a certain rate: a download holds
// files of the store.
type download struct {
	*stream
	begin func() error
	end   func()
	buf   []byte
	rate  outbox.Rate
}

func (d *download) Write(p []byte) (int, error) {
	if d.buf = append(d.buf, p...); len(d.buf) < downloadBytes {
		return len(p), nil
	}
	if err := d.flush(); err != nil {
		return 0, err
	}
	return len(p), d.begin()
}

func (d *download) flush() error {
	d.end()
	if err := d.rate.Check(); err != nil {
		return err
	}
	d.stream.begun = true // the type is not that of events
	began := d.stream.now()
	err := d.stream.write(d.buf)
	d.rate.Count(len(d.buf), d.stream.now().Sub(began))
	d.buf = d.buf[:0]
	return err
}
