package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file turns requests and their answers into bytes, for the node that is the home of their
// database. First comes a head, which is JSON with its length before it, then the nodes, as JSON
// with priorities. What comes from another node is read as strictly as what a client sends.

// ErrNotForwarded says that a request can be made at the home of its database only, by what runs there.
var ErrNotForwarded = errors.New("a request of this kind is made by the home of the database alone")

// A forwardHead is a Request without its nodes.
type forwardHead struct {
	At       string        `json:"at,omitempty"`
	Patch    bool          `json:"patch,omitempty"`
	Push     bool          `json:"push,omitempty"`
	IfMatch  string        `json:"ifMatch,omitempty"`
	AlsoAt   []string      `json:"alsoAt,omitempty"`
	AlsoTags []string      `json:"alsoTags,omitempty"`
	IfHash   *string       `json:"ifHash,omitempty"`
	Who      forwardWho    `json:"who"`
	Parts    []forwardPart `json:"parts,omitempty"`
	Revise   string        `json:"revise,omitempty"` // the kind of a change of settings
	Revision []byte        `json:"revision,omitempty"`
}

// A forwardPart is an assignment. Its node has so many bytes of text.
type forwardPart struct {
	Path     string `json:"path"`
	Name     string `json:"name,omitempty"`
	Priority bool   `json:"priority,omitempty"`
	Bytes    int    `json:"bytes"`
}

// A forwardWho is an auth.Identity. Auth is the text of what rules see.
type forwardWho struct {
	Admin    bool   `json:"admin,omitempty"`
	Operator bool   `json:"operator,omitempty"`
	Debug    bool   `json:"debug,omitempty"`
	Simulate bool   `json:"simulate,omitempty"`
	Auth     string `json:"auth,omitempty"`
	Expires  int64  `json:"expires,omitempty"` // in milliseconds
	Basis    string `json:"basis,omitempty"`
	By       string `json:"by,omitempty"`
}

func newForwardWho(who auth.Identity) forwardWho {
	w := forwardWho{Admin: who.Admin, Operator: who.Operator, Debug: who.Debug, Simulate: who.Simulate, Basis: who.Basis, By: who.By}
	if !who.Auth.IsNull() {
		w.Auth = string(tree.AppendJSON(nil, who.Auth, tree.Export))
	}
	if !who.Expires.IsZero() {
		w.Expires = who.Expires.UnixMilli()
	}
	return w
}

func (w forwardWho) identity() (auth.Identity, error) {
	who := auth.Identity{Admin: w.Admin, Operator: w.Operator, Debug: w.Debug, Simulate: w.Simulate, Basis: w.Basis, By: w.By}
	if w.Expires != 0 {
		who.Expires = time.UnixMilli(w.Expires)
	}
	if w.Auth == "" {
		return who, nil
	}
	var err error
	who.Auth, err = tree.DecodeClaims([]byte(w.Auth))
	return who, err
}

// EncodeRequest returns the bytes of a request, with some bytes before them for what the caller has to say. It fails with ErrNotForwarded for one
// that cannot be forwarded. A request may be as large as a body: it is printed once, into memory that is taken at once.
func EncodeRequest(req Request, before int) ([]byte, error) {
	if req.drop || req.save != nil || req.parting != nil || req.expiring != nil {
		return nil, ErrNotForwarded
	}
	head := forwardHead{
		At: req.At.String(), Patch: req.Patch, Push: req.Push, IfMatch: req.IfMatch, IfHash: req.IfHash, Who: newForwardWho(req.Who),
	}
	for _, c := range req.Also {
		head.AlsoAt, head.AlsoTags = append(head.AlsoAt, c.Path.String()), append(head.AlsoTags, c.ETag)
	}
	var err error
	if req.revise != nil {
		if head.Revise, head.Revision, err = encodeRevision(req.revise); err != nil {
			return nil, err
		}
	}
	room := before + forwardRoom
	out := make([]byte, room, room+req.Bytes()+req.Bytes()/8)
	for _, a := range req.Assignments {
		from := len(out)
		out = tree.AppendJSON(out, a.Node, tree.Export)
		head.Parts = append(head.Parts, forwardPart{a.Path.String(), a.Name, a.Priority, len(out) - from})
	}
	return prependHead(head, before, out, room)
}

// forwardRoom is kept for the head of a request, which is known last. One that is longer has all of it copied once.
const forwardRoom = 1 << 10

// prependHead puts a head with its length before what begins at from, and returns it with some bytes before that.
func prependHead(head any, before int, out []byte, from int) ([]byte, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	text = append(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen32+len(text)), uint64(len(text))), text...)
	if missing := before + len(text) - from; missing > 0 {
		out, from = append(make([]byte, missing, missing+len(out)), out...), from+missing
	}
	copy(out[from-len(text):], text)
	return out[from-len(text)-before:], nil
}

// appendHead returns a head with its length before it, and what follows it.
func appendHead(head any, rest []byte) ([]byte, error) {
	return prependHead(head, 0, rest, 0)
}

// cutHead reads a head, and returns what follows it.
func cutHead(b []byte, head any) (rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, errors.New("a forwarded request is cut short")
	}
	return b[n+int(size):], json.Unmarshal(b[n:n+int(size)], head)
}

// DecodeRequest reads what EncodeRequest has written.
func DecodeRequest(b []byte) (Request, error) {
	var head forwardHead
	texts, err := cutHead(b, &head)
	if err != nil {
		return Request{}, fmt.Errorf("a forwarded request cannot be read: %w", err)
	}
	req := Request{Push: head.Push, IfMatch: head.IfMatch, IfHash: head.IfHash}
	req.Patch = head.Patch
	if req.Who, err = head.Who.identity(); err != nil {
		return Request{}, err
	}
	if req.At, err = tree.ParsePath(head.At); err != nil {
		return Request{}, err
	}
	if len(head.AlsoAt) != len(head.AlsoTags) {
		return Request{}, errors.New("a forwarded request has conditions that cannot be read")
	}
	for i, at := range head.AlsoAt {
		p, err := tree.ParsePath(at)
		if err != nil {
			return Request{}, err
		}
		req.Also = append(req.Also, Condition{p, head.AlsoTags[i]})
	}
	if head.Revise != "" {
		req.revise, err = decodeRevision(head.Revise, head.Revision)
		return req, err
	}
	req.Assignments, err = decodeParts(head.Parts, texts, head.Push)
	if err == nil {
		err = req.CheckOverlap()
	}
	return req, err
}

// decodeParts reads assignments whose nodes are in a text, one after the other.
func decodeParts(parts []forwardPart, texts []byte, push bool) ([]tree.Assignment, error) {
	list := make([]tree.Assignment, 0, len(parts))
	for _, part := range parts {
		if part.Bytes < 0 || part.Bytes > len(texts) {
			return nil, errors.New("a forwarded request is cut short")
		}
		a := tree.Assignment{Name: part.Name, Priority: part.Priority}
		var err error
		if a.Path, err = tree.ParsePath(part.Path); err != nil {
			return nil, err
		}
		text := texts[:part.Bytes]
		texts = texts[part.Bytes:]
		depth := a.Path.Depth()
		if push {
			depth++
		}
		switch {
		case string(text) == "null":
		case a.Priority:
			a.Node, err = tree.DecodePriority(strings.NewReader(string(text)), tree.DecodeOptions{})
		default:
			a.Node, err = tree.DecodeBytes(text, tree.DecodeOptions{Depth: depth})
		}
		if err != nil {
			return nil, fmt.Errorf("a forwarded node cannot be read: %w", err)
		}
		list = append(list, a)
	}
	if len(texts) > 0 {
		return nil, errors.New("a forwarded request has bytes too many")
	}
	return list, nil
}

// The kinds of changes of settings, as they are forwarded.
const (
	reviseRows    = "rows"
	reviseDeploy  = "deploy"
	reviseAccount = "addAccount"
	reviseRevoke  = "revokeAccount"
	reviseAddHook = "addHook"
	reviseRemove  = "removeHook"
	reviseReplace = "replaceHook"
)

// encodeRevision returns the kind of a change of settings, and its bytes.
func encodeRevision(change reviser) (kind string, b []byte, err error) {
	switch c := change.(type) {
	case setRows:
		b, err = json.Marshal(store.Settings(c))
		return reviseRows, b, err
	case *deploy:
		b, err = json.Marshal(c.Deployment)
		return reviseDeploy, b, err
	case *addAccount:
		b, err = state.EncodeAccounts([]auth.Account{auth.Account(*c)})
		return reviseAccount, b, err
	case revokeAccount:
		return reviseRevoke, []byte(c), nil
	case *addHook:
		b, err = (*hook.Hook)(c).Encode()
		return reviseAddHook, b, err
	case removeHook:
		return reviseRemove, []byte(c), nil
	case replaceHook:
		was, wasErr := c.was.Encode()
		is, isErr := c.is.Encode()
		b, err = json.Marshal([][]byte{was, is})
		return reviseReplace, b, errors.Join(wasErr, isErr, err)
	}
	return "", nil, ErrNotForwarded
}

// decodeRevision reads what encodeRevision has written.
func decodeRevision(kind string, b []byte) (reviser, error) {
	switch kind {
	case reviseRows:
		var rows store.Settings
		err := json.Unmarshal(b, &rows)
		return setRows(rows), err
	case reviseDeploy:
		var c deploy
		if err := json.Unmarshal(b, &c.Deployment); err != nil {
			return nil, err
		}
		ruleset, err := state.CompileRules(c.Document)
		if err == nil {
			c.wanted, err = state.IndexRules(ruleset)
		}
		return &c, err
	case reviseAccount:
		list, err := state.DecodeAccounts(b)
		if err != nil || len(list) != 1 {
			return nil, fmt.Errorf("a forwarded account cannot be read: %w", err)
		}
		return (*addAccount)(&list[0]), nil
	case reviseRevoke:
		return revokeAccount(b), nil
	case reviseRemove:
		return removeHook(b), nil
	case reviseAddHook:
		h, err := hook.DecodeHook(b)
		return (*addHook)(h), err
	case reviseReplace:
		var pair [][]byte
		if err := json.Unmarshal(b, &pair); err != nil || len(pair) != 2 {
			return nil, errors.New("a forwarded change of a hook cannot be read")
		}
		was, wasErr := hook.DecodeHook(pair[0])
		is, isErr := hook.DecodeHook(pair[1])
		return replaceHook{was, is}, errors.Join(wasErr, isErr)
	}
	return nil, fmt.Errorf("a change of settings of the unknown kind %.40q", kind)
}

// An answerHead is a Commit without its nodes, or an error.
type answerHead struct {
	Failed   bool          `json:"failed,omitempty"`
	Kind     fault.Kind    `json:"kind,omitempty"`
	Text     string        `json:"text,omitempty"`
	Position uint64        `json:"position,omitempty"`
	Millis   int64         `json:"millis,omitempty"`
	Settings bool          `json:"settings,omitempty"`
	Author   string        `json:"author,omitempty"`
	Key      string        `json:"key,omitempty"`
	Trace    string        `json:"trace,omitempty"`
	Revoked  *int          `json:"revoked,omitempty"`
	Hook     []byte        `json:"hook,omitempty"`
	Parts    []forwardPart `json:"parts,omitempty"` // if server values were resolved
}

// EncodeAnswer returns the bytes of what became of a forwarded request.
func EncodeAnswer(req Request, c Commit, err error) ([]byte, error) {
	head := answerHead{
		Position: c.Position, Millis: c.Millis, Settings: c.Settings, Author: c.Author.String(), Key: c.Key, Trace: c.Trace,
	}
	if err != nil {
		head.Failed, head.Kind, head.Text = true, fault.KindOf(err), fault.Public(err)
	}
	var texts []byte
	if r := c.Revised; r != nil {
		head.Revoked = &r.Revoked
		if r.Hook != nil {
			var err error
			if head.Hook, err = r.Hook.Encode(); err != nil {
				return nil, err
			}
		}
	}
	if resolves(req) {
		for _, a := range c.Assignments {
			before := len(texts)
			texts = tree.AppendJSON(texts, a.Node, tree.Export)
			head.Parts = append(head.Parts, forwardPart{a.Path.String(), a.Name, a.Priority, len(texts) - before})
		}
	}
	return appendHead(head, texts)
}

// resolves reports whether what is committed has other nodes than the request.
func resolves(req Request) bool {
	for _, a := range req.Assignments {
		if a.Node.HasPlaceholders() {
			return true
		}
	}
	return false
}

// DecodeAnswer reads what EncodeAnswer has written for a request.
func DecodeAnswer(req Request, b []byte) (Commit, error) {
	var head answerHead
	texts, err := cutHead(b, &head)
	if err != nil {
		return Commit{}, fmt.Errorf("the answer of the home of the database cannot be read: %w", err)
	}
	c := Commit{Key: head.Key, Trace: head.Trace}
	if head.Failed {
		return c, fault.New(head.Kind, "%s", head.Text)
	}
	c.Position, c.Millis, c.Settings, c.Author = head.Position, head.Millis, head.Settings, tree.ParseAuthor(head.Author)
	c.Write = req.Write
	if req.Push && len(req.Assignments) == 1 {
		c.Write = tree.Put(req.At.Child(head.Key), req.Assignments[0].Node)
	}
	if head.Parts != nil {
		if c.Assignments, err = decodeParts(head.Parts, texts, false); err != nil {
			return Commit{}, err
		}
	}
	if head.Revoked != nil {
		c.Revised = &Revised{Revoked: *head.Revoked}
		if head.Hook != nil {
			c.Revised.Hook, err = hook.DecodeHook(head.Hook)
		}
	}
	return c, err
}

// CommitOf returns the answer to a request that was committed as a change. It fails if that cannot be told.
func CommitOf(req Request, c tree.Change) (Commit, error) {
	commit := Commit{Change: c}
	if req.Push {
		commit.Key = c.At.Last()
	}
	switch {
	case !resolves(req) && req.Push && len(req.Assignments) == 1:
		commit.Write = tree.Put(c.At, req.Assignments[0].Node)
	case !resolves(req):
		commit.Write = req.Write
	case c.Truncated:
		return Commit{}, errors.New("what the server values of the request came to is not in the log")
	default:
		commit.Write = named(c.Write, req.Write)
	}
	commit.Truncated = false
	return commit, nil
}

// named returns what was committed in the order and with the names of the request.
func named(committed, asked tree.Write) tree.Write {
	w := tree.Write{At: committed.At, Patch: asked.Patch}
	if !asked.Patch {
		w.Assignments = committed.Assignments
		return w
	}
	for _, a := range asked.Assignments {
		for _, c := range committed.Assignments {
			if c.Path == a.Path && c.Priority == a.Priority {
				c.Name = a.Name
				w.Assignments = append(w.Assignments, c)
			}
		}
	}
	return w
}
