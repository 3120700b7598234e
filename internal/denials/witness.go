package denials

import (
	"strings"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// Bounds of one entry, in bytes, and of its trace in steps as well.
const (
	maxPath  = 2 << 10
	maxAuth  = 2 << 10
	maxData  = 4 << 10
	maxTrace = 8 << 10
	maxSteps = 50
	maxUser  = 128
)

// The verbs of entries: those of a simulation, and Write for a write that was denied before its
// body was read.
const (
	Read   = "read"
	Put    = "put"
	Patch  = "patch"
	Post   = "post"
	Delete = "delete"
	Write  = "write"
)

// A Request is what is judged.
type Request struct {
	// Verb is one of the constants above.
	Verb string
	Path tree.Path
	// Query is that of a read, nil for none.
	Query *query.Query
	// Write is what a write brings, before its server values are resolved.
	Write tree.Write
}

// OfWrite returns the request of a write, whose key the server draws if push is set.
func OfWrite(w tree.Write, push bool) Request {
	q := Request{Verb: Put, Path: w.At, Write: w}
	switch {
	case push:
		q.Verb = Post
	case w.Patch:
		q.Verb = Patch
	case len(w.Assignments) == 1 && w.Assignments[0].Node.IsNull() && !w.Assignments[0].Priority:
		q.Verb = Delete
	}
	return q
}

// An Entry is a request that was denied, as it is shown.
type Entry struct {
	Number uint64 `json:"-"`
	Millis int64  `json:"time"`
	Verb   string `json:"verb"`
	Path   string `json:"path"`
	// Auth is what rules saw as auth, JSON as text: null for nobody.
	Auth string `json:"auth"`
	// Data is what was to be written, JSON as text. It is empty for reads, for priorities, and
	// where the body was not read.
	Data  string            `json:"data,omitempty"`
	Query map[string]string `json:"query,omitempty"`
	// Cut says that the path, auth or data were too long, and are cut or left out.
	Cut bool `json:"cut,omitempty"`
	// By is the rule that refused; nil if no rule allowed it.
	By    *rules.Place `json:"by,omitempty"`
	Trace []rules.Step `json:"trace"`
	More  bool         `json:"more,omitempty"` // rules were asked that are not listed
}

// A Witness sees one judgement. That of nil sees nothing. It belongs to one goroutine.
type Witness struct {
	board    *Board
	database uint64
	request  Request
	asked    []rules.Asked
	more     bool
}

// Witness returns who is to see the judgement of a request, nil if nobody looks at the
// database.
func (b *Board) Witness(database uint64, q Request) *Witness {
	if !b.Watched() || !b.watches(database) {
		return nil
	}
	return &Witness{board: b, database: database, request: q}
}

// Observe returns what is to be told of the rules that are asked; nil if nobody looks.
func (w *Witness) Observe() func(rules.Asked) {
	if w == nil {
		return nil
	}
	return func(a rules.Asked) {
		if w.more = len(w.asked) == maxSteps; !w.more {
			w.asked = append(w.asked, a)
		}
	}
}

// Denied notes that the judgement denies the request, to somebody and at a time.
func (w *Witness) Denied(auth tree.Node, millis int64, by rules.DecidingRule) {
	if w == nil {
		return
	}
	user := userOf(auth)
	if !w.board.admit(w.database, user, millis) {
		return
	}
	e := Entry{Millis: millis, Verb: w.request.Verb, By: by.Place(), Trace: []rules.Step{}}
	e.Path = e.text(w.request.Path.String(), maxPath)
	e.Auth = e.node(auth, maxAuth)
	bytes := 0
	switch e.Verb {
	case Read:
		if w.request.Query != nil {
			e.Query, bytes = e.parameters(*w.request.Query)
		}
	case Put, Post, Patch:
		e.Data = e.write(w.request.Write)
	}
	bytes += len(e.Path) + len(e.Auth) + len(e.Data) + w.trace(&e) + entryBytes
	w.board.add(w.database, &noted{Entry: e, user: user, bytes: bytes})
}

// entryBytes is what an entry takes beside its texts, and stepBytes a step.
const (
	entryBytes = 512
	stepBytes  = 160
)

// userOf returns by which name denials are shared among users; that of all who have none is
// empty.
func userOf(auth tree.Node) string {
	name := auth.Child("uid")
	if name.Kind() != tree.String {
		return ""
	}
	text := name.Leaf().Text()
	return strings.Clone(text[:min(len(text), maxUser)])
}

// text returns a text, cut if it is long.
func (e *Entry) text(s string, most int) string {
	if len(s) <= most {
		return s
	}
	e.Cut = true
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// node returns a node as JSON text, or nothing if that is long.
func (e *Entry) node(n tree.Node, most int) string { return e.body(tree.Put(tree.Path{}, n), most) }

// write returns what a write brings as JSON text, or nothing if it is long or a priority.
func (e *Entry) write(w tree.Write) string {
	if len(w.Assignments) == 1 && w.Assignments[0].Priority {
		return ""
	}
	return e.body(w, maxData)
}

func (e *Entry) body(w tree.Write, most int) string {
	text, ok := tree.AppendBody(nil, w, most)
	e.Cut = e.Cut || !ok
	return string(text)
}

// parameters returns those of a query and how long they are, or nothing if that is long.
func (e *Entry) parameters(q query.Query) (list map[string]string, bytes int) {
	list = q.Parameters()
	for name, value := range list {
		bytes += len(name) + len(value)
	}
	if bytes > maxData {
		e.Cut = true
		return nil, 0
	}
	return list, bytes
}

// trace adds the rules that were asked, as far as there is room, and returns how long they are.
func (w *Witness) trace(e *Entry) (bytes int) {
	e.More = w.more
	for _, a := range w.asked {
		step := a.Step()
		if bytes += len(step.Path) + len(step.Text) + len(step.Error) + stepBytes; bytes > maxTrace {
			e.More = true
			return maxTrace
		}
		step.Text = strings.Clone(step.Text) // not the whole document
		e.Trace = append(e.Trace, step)
	}
	return bytes
}
