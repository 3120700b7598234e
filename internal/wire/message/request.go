package message

import (
	"bytes"
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// An Action is what a request asks for.
type Action uint8

// The actions. Unknown is any other.
const (
	Unknown            Action = iota
	Stats                     // s: counters of the client
	Listen                    // q
	Unlisten                  // n
	Get                       // g
	Put                       // p
	Merge                     // m
	OnDisconnectPut           // o
	OnDisconnectMerge         // om
	OnDisconnectCancel        // oc
	Login                     // auth, gauth
	Logout                    // unauth
	AppCheck                  // appcheck, unappcheck
)

var actions = map[string]Action{
	"s": Stats, "q": Listen, "n": Unlisten, "g": Get, "p": Put, "m": Merge,
	"o": OnDisconnectPut, "om": OnDisconnectMerge, "oc": OnDisconnectCancel,
	"auth": Login, "gauth": Login, "unauth": Logout,
	"appcheck": AppCheck, "unappcheck": AppCheck, "unappeck": AppCheck, // as the JS SDK spells it
}

// hasPath reports whether the action is about a path.
func (a Action) hasPath() bool { return a >= Listen && a <= OnDisconnectCancel }

// Writes reports whether the action brings data.
func (a Action) Writes() bool { return a >= Put && a <= OnDisconnectMerge }

// Leaves reports whether the action is about what is written when the client goes.
func (a Action) Leaves() bool { return a >= OnDisconnectPut && a <= OnDisconnectCancel }

// Merges reports whether the data of the action is that of an update.
func (a Action) Merges() bool { return a == Merge || a == OnDisconnectMerge }

// A Request is what a client asks for. It refers to the text that it was read from,
// but for Path and Query.
type Request struct {
	// ID is the client's number of the request, which its reply has, too.
	ID     int64
	Action Action
	// Err is what is wrong with the request: a fault. Only ID and Action count then.
	Err error

	Path     tree.Path
	Priority bool // the path ends in .priority: of Put, OnDisconnectPut and OnDisconnectCancel

	// Query selects among the children; nil for all there is. Of a Listen or an Unlisten,
	// QueryText is the query as it was sent, and Tag the number that pushes for it have.
	Query     *query.Query
	QueryText []byte
	Tag       int64
	// Hash is that of what the client has, or of what a write expects; nil for none.
	Hash *string
	// Compound is what a client says about ranges of what it has, a JSON text; nil for
	// nothing. CompoundHash reads it.
	Compound []byte
	// Data is what to write, a JSON text. Decode reads it.
	Data []byte

	// Credential is that of a Login. AsNobody, or else Variable, a JSON text, say as whom
	// an administrator asks.
	Credential string
	AsNobody   bool
	Variable   []byte

	// Counters are those of Stats, a JSON text.
	Counters []byte
}

var (
	errAction = fault.New(fault.Invalid, "unknown action")
	errBody   = fault.New(fault.Invalid, "a request needs a body, which is an object")
	errTag    = fault.New(fault.Invalid, "the tag of a query must be an integer from 0 to 2^53")
	errHash   = fault.New(fault.Invalid, "a hash must be a string")
	errLogin  = fault.New(fault.Unauthenticated, "Could not parse auth token.")
)

// IsUnknownAction reports whether an error is that of a request for an unknown action.
func IsUnknownAction(err error) bool { return err == errAction } //nolint:errorlint // it is never wrapped

// parseRequest reads the data of a request. A number that the reply could have is all
// that it must have.
func parseRequest(data []byte) (q Request, err error) {
	var id, body []byte
	action := ""
	err = parse(data, func(name string, value []byte) error {
		switch name {
		case "r":
			id = value
		case "a":
			action, _ = plainText(value)
		case "b":
			body = value
		}
		return nil
	})
	if err != nil {
		return Request{}, err
	}
	var ok bool
	if q.ID, ok = plainInteger(id); !ok {
		return Request{}, ErrUnreadable
	}
	if q.Action = actions[action]; q.Action == Unknown {
		q.Err = errAction
		return q, nil
	}
	q.Err = q.parseBody(body)
	return q, nil
}

// A body is the members of a request's body, as texts; nil if they are missing.
type body struct {
	path, data, hash, query, tag, compound []byte
	credential, variable, nobody, counters []byte
}

// field returns where a member of a body belongs; nil for one that is not known.
func (b *body) field(name string) *[]byte {
	switch name {
	case "p":
		return &b.path
	case "d":
		return &b.data
	case "h":
		return &b.hash
	case "q":
		return &b.query
	case "t":
		return &b.tag
	case "ch":
		return &b.compound
	case "cred":
		return &b.credential
	case "authvar":
		return &b.variable
	case "noauth":
		return &b.nobody
	case "c":
		return &b.counters
	}
	return nil
}

// parseBody reads what the action of the request needs.
func (q *Request) parseBody(text []byte) error {
	var b body
	err := parse(text, func(name string, value []byte) error {
		if field := b.field(name); field != nil {
			*field = value
		}
		return nil
	})
	if err != nil {
		return errBody
	}
	switch {
	case q.Action == Stats:
		q.Counters = b.counters
	case q.Action == Login:
		return q.parseLogin(&b)
	case q.Action.hasPath():
		return q.parseData(&b)
	}
	return nil
}

// A hash has 28 characters. What is longer than maxHash is not kept, and noHash, which is that of nothing, stands for it.
const (
	maxHash = 64
	noHash  = "too long for a hash"
)

// parseData reads a request about a path.
func (q *Request) parseData(b *body) (err error) {
	if q.Path, q.Priority, err = parsePath(b.path, q.mayEndInPriority()); err != nil {
		return err
	}
	if !isNull(b.hash) {
		hash, ok := plainText(b.hash)
		if !ok {
			return errHash
		}
		if len(hash) > maxHash {
			hash = noHash
		}
		q.Hash = &hash
	}
	switch {
	case q.Action.Writes():
		if q.Data = b.data; q.Data == nil {
			return fault.New(fault.Invalid, "Error: No data supplied.")
		}
	case q.Action == Get:
		return q.parseGet(b.query)
	case q.Action == Listen, q.Action == Unlisten:
		return q.parseListen(b)
	}
	return nil
}

func (q *Request) mayEndInPriority() bool {
	return q.Action == Put || q.Action == OnDisconnectPut || q.Action == OnDisconnectCancel
}

// parseGet reads the query of a Get. One that selects every child asks for the node.
func (q *Request) parseGet(text []byte) error {
	if isNull(text) {
		return nil
	}
	found, all, err := query.ParseObject(text)
	if err == nil && !all {
		q.Query = &found
	}
	return err
}

// parseListen reads the query of a Listen or an Unlisten, which has a tag, or else there
// is none.
func (q *Request) parseListen(b *body) error {
	q.Compound = b.compound
	if isNull(b.tag) || isNull(b.query) || isEmptyObject(b.query) {
		return nil
	}
	var ok bool
	if q.Tag, ok = plainInteger(b.tag); !ok || q.Tag > maxTag {
		return errTag
	}
	found, _, err := query.ParseObject(b.query)
	if err == nil {
		q.Query, q.QueryText = &found, b.query
	}
	return err
}

// maxTag is the largest tag: the largest integer that every SDK can hold.
const maxTag = 1 << 53

// isEmptyObject reports whether a JSON value is {}.
func isEmptyObject(value []byte) bool {
	return value[0] == '{' && bytes.TrimLeft(value[1:], " \t\r\n")[0] == '}'
}

// parseLogin reads a credential, and as whom its holder asks.
func (q *Request) parseLogin(b *body) error {
	var ok bool
	if q.Credential, ok = plainText(b.credential); !ok || q.Credential == "" {
		return errLogin
	}
	q.AsNobody = bytes.Equal(b.nobody, []byte("true"))
	if !q.AsNobody {
		q.Variable = b.variable
	}
	return nil
}

const prioritySuffix = ".priority"

// parsePath reads a path, which may end in .priority where that is allowed.
func parsePath(value []byte, priority bool) (p tree.Path, isPriority bool, err error) {
	text, ok := plainText(value)
	if !ok {
		return tree.Path{}, false, errPath(nil)
	}
	if priority {
		text, isPriority = cutPriority(text)
	}
	p, err = tree.ParsePath(text)
	if err != nil {
		return tree.Path{}, false, errPath(err)
	}
	return p.Clone(), isPriority, nil // the text, of which slashes were left out, may be much longer
}

// cutPriority returns a path without the key .priority at its end, if it has one.
func cutPriority(text string) (string, bool) {
	rest, ok := strings.CutSuffix(text, prioritySuffix)
	if ok && (rest == "" || strings.HasSuffix(rest, "/")) {
		return rest, true
	}
	return text, false
}

func errPath(cause error) error {
	return fault.Wrap(fault.Invalid, cause, "Invalid token in path")
}

// Decode reads the data of a write, as the body of a PUT or a PATCH is read. Charge, if
// not nil, is told what that takes in memory. Errors are those of tree.Decode.
func (q *Request) Decode(charge func(bytes int64) error) (w tree.Write, err error) {
	opts := tree.DecodeOptions{Depth: q.Path.Depth(), Charge: charge}
	var n tree.Node
	switch {
	case q.Action.Merges():
		w, err = tree.DecodePatch(bytes.NewReader(q.Data), q.Path, opts)
	case q.Priority:
		n, err = tree.DecodePriority(bytes.NewReader(q.Data), opts)
		w = tree.PutPriority(q.Path, n)
	default:
		n, err = tree.DecodeBytes(q.Data, opts)
		w = tree.Put(q.Path, n)
	}
	if err != nil {
		return tree.Write{}, err
	}
	return w, nil
}
