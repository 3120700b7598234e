package poll

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
)

// Options configure Lines.
type Options struct {
	// Patience returns how long the writes of an answer may wait for a client.
	Patience func() outbox.Patience
	// Budget returns what bounds the memory for the messages of a client that begins by a
	// request; nil for no bound.
	Budget func(*http.Request) frame.Budget
	// Hold takes memory for the answer to a request, until release is called; false if there is not enough. Nil for no bound.
	Hold func(*http.Request) (release func(), ok bool)
}

// Lines are all connections by long polling.
type Lines struct {
	opts Options

	mu   sync.Mutex
	byID map[string]*Line
}

// New returns no lines yet.
func New(opts Options) *Lines {
	if opts.Budget == nil {
		opts.Budget = func(*http.Request) frame.Budget { return boundless{} }
	}
	if opts.Hold == nil {
		opts.Hold = func(*http.Request) (func(), bool) { return func() {}, true }
	}
	return &Lines{opts: opts, byID: map[string]*Line{}}
}

// boundless is a budget of all the memory there is.
type boundless struct{}

func (boundless) Charge(int) bool { return true }
func (boundless) Release(int)     {}

// Serve answers a request for /.lp to a database. begin is called for a new line: it puts a
// session on it, which says hello. If that fails, Serve returns its error, and the
// caller answers. Serve returns when the request is answered.
func (l *Lines) Serve(w http.ResponseWriter, r *http.Request, database string, begin func(*Line) error) error {
	ask, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || ask.kind != askLeave) {
		return fault.New(fault.Invalid, "long polling is by GET")
	}
	a := &answer{w: w, control: http.NewResponseController(w), patience: l.opts.Patience()}
	a.hold = func() (func(), bool) { return l.opts.Hold(r) }
	defer a.end()
	switch ask.kind {
	case askStart:
		return l.start(r, a, ask, database, begin)
	case askLeave:
		if line := l.find(ask, database); line != nil {
			line.leave()
		}
		a.empty()
	case askPage:
		line := l.find(ask, database)
		if line != nil {
			line.pageAsked()
		}
		a.page(line, ask)
	case askPoll:
		line := l.find(ask, database)
		if line == nil {
			a.script(closeCommand(0))
			break
		}
		line.take(ask.segments)
		line.answer(r.Context(), a)
	}
	return nil
}

// start makes a line. The request is its first poll.
func (l *Lines) start(r *http.Request, a *answer, ask ask, database string, begin func(*Line) error) error {
	line := newLine(l, database, l.opts.Budget(r))
	a.head = startScript(ask.callback, line.id, line.password)
	l.mu.Lock()
	l.byID[line.id] = line
	l.mu.Unlock()
	if err := a.wait(func() error { return begin(line) }); err != nil {
		line.leave()
		return err // nothing was written
	}
	line.answer(r.Context(), a)
	return nil
}

// find returns the line that a request is for; nil if there is none with this id, password
// and database.
func (l *Lines) find(ask ask, database string) *Line {
	l.mu.Lock()
	line := l.byID[ask.id]
	l.mu.Unlock()
	if line == nil || line.database != database ||
		subtle.ConstantTimeCompare([]byte(line.password), []byte(ask.password)) == 0 {
		return nil
	}
	return line
}

func (l *Lines) remove(line *Line) {
	l.mu.Lock()
	delete(l.byID, line.id)
	l.mu.Unlock()
}

// Count returns how many lines there are, those included that ended a moment ago.
func (l *Lines) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

// newSecret returns a text that no one can guess, of letters and digits.
func newSecret() string { return rand.Text() }
