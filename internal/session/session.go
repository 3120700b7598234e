// Package session says who is signed in to the operator's listener.
//
// A Session stands for a credential that was shown once: the operator's, or the
// secret of one database. It is a text that the holder sends with each request. The
// text holds what the session is, signed with a key that is derived from the
// operator's credential: the server keeps no list of sessions, they survive a restart,
// and a new credential ends them all.
//
// The types to know:
//
//   - Keeper begins sessions, finds them again by their text, and ends them. It
//     remembers those that were ended, in a file, until they would have expired.
//     Requests that are under way for a session are held by it, and cut short when the
//     session ends.
//   - Codes are good for one sign-in each, soon: they can be shown in a terminal.
//   - Brake holds up those who guess.
//
// A session of a database rests on the secret that was shown. Whether the database
// still has that secret is for the caller to ask (RestsOn), who knows the databases.
// Nothing here is ever logged but the id of a session, which opens nothing.
package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// Life is how long a session lasts.
const Life = 12 * time.Hour

// A Scope is how far a session reaches.
type Scope string

// The scopes.
const (
	Operator Scope = "operator" // everything
	Database Scope = "database" // one database, as far as the holder of its secret may
)

// A Session is who is signed in.
type Session struct {
	// ID names it in the log and the audit list. It opens nothing.
	ID    string
	Scope Scope
	// Database is set for the scope Database.
	Database string
	Expires  time.Time

	basis string // stands for the secret that it rests on
}

// claims are a session as its text has it.
type claims struct {
	ID       string `json:"i"`
	Scope    Scope  `json:"s"`
	Database string `json:"d,omitempty"`
	Basis    string `json:"b,omitempty"`
	Expires  int64  `json:"e"` // in milliseconds
}

const (
	// prefix begins the text of every session, so that one that has got somewhere it
	// should not be is found.
	prefix = "lts_"
	// maxText bounds the text of a session: the name of a database is the longest part.
	maxText = 1024
)

var encoding = base64.RawURLEncoding

// Options configure a Keeper. All must be set.
type Options struct {
	// Credential is the operator's.
	Credential string
	// File is where ended sessions are remembered.
	File string
	Now  func() time.Time
}

// A Keeper begins, finds and ends sessions. It is safe for concurrent use.
type Keeper struct {
	now func() time.Time
	key []byte

	mu    sync.Mutex
	ended ended
	held  []*held
}

// held is a request that is under way for a session.
type held struct {
	session Session
	cancel  context.CancelFunc
}

// Open returns a keeper that knows the sessions that were ended.
func Open(opts Options) (*Keeper, error) {
	k := &Keeper{now: opts.Now, key: digest([]byte(opts.Credential), "livetree sessions 1")}
	var err error
	k.ended, err = loadEnded(opts.File, opts.Now())
	return k, err
}

func digest(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum(nil)
}

// BeginOperator begins a session of the operator. It returns its text, too.
func (k *Keeper) BeginOperator() (Session, string) {
	return k.begin(Session{Scope: Operator})
}

// BeginDatabase begins a session for a database, one of whose secrets was shown.
func (k *Keeper) BeginDatabase(name, secret string) (Session, string) {
	return k.begin(Session{Scope: Database, Database: name, basis: k.basis(name, secret)})
}

func (k *Keeper) begin(s Session) (Session, string) {
	// It expires at a whole millisecond, as its text says.
	s.ID, s.Expires = rand.Text()[:16], time.UnixMilli(k.now().Add(Life).UnixMilli())
	text, err := json.Marshal(claims{s.ID, s.Scope, s.Database, s.basis, s.Expires.UnixMilli()})
	if err != nil {
		panic(err) // they are strings and a number
	}
	signed := prefix + encoding.EncodeToString(text)
	return s, signed + "." + encoding.EncodeToString(digest(k.key, signed))
}

// basis stands for a secret without telling it.
func (k *Keeper) basis(database, secret string) string {
	return encoding.EncodeToString(digest(k.key, "secret\x00"+database+"\x00"+secret)[:16])
}

// IsText reports whether a text looks like that of a session.
func IsText(text string) bool { return strings.HasPrefix(text, prefix) }

// Find returns the session of a text; false if there is none, or none any more.
func (k *Keeper) Find(text string) (Session, bool) {
	if len(text) > maxText || !IsText(text) {
		return Session{}, false
	}
	signed, sum, _ := strings.Cut(text, ".")
	given, err := encoding.Strict().DecodeString(sum)
	if err != nil || !hmac.Equal(given, digest(k.key, signed)) {
		return Session{}, false
	}
	// It is ours, from here on.
	raw, err := encoding.DecodeString(strings.TrimPrefix(signed, prefix))
	var c claims
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return Session{}, false
	}
	s := Session{c.ID, c.Scope, c.Database, time.UnixMilli(c.Expires), c.Basis}
	return s, k.Lasts(s)
}

// Lasts reports whether a session has neither expired nor been ended.
func (k *Keeper) Lasts(s Session) bool {
	if !k.now().Before(s.Expires) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.ended.has(s)
}

// RestsOn reports whether a session of a database rests on one of its secrets.
func (k *Keeper) RestsOn(s Session, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return hmac.Equal([]byte(k.basis(s.Database, secret)), []byte(s.basis))
	})
}

// End ends a session, with the requests that are under way for it. The error says that
// it could not be written down: then a restart would bring it back.
func (k *Keeper) End(s Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.ended.add(s, k.now())
	for _, h := range k.held {
		if k.ended.has(h.session) {
			h.cancel()
		}
	}
	return err
}

// Hold returns a context for a request of a session. It ends with the session, and
// release is to be called when the request is over.
func (k *Keeper) Hold(ctx context.Context, s Session) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	h := &held{s, cancel}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended.has(s) {
		cancel() // it was ended since it was found
	}
	k.held = append(k.held, h)
	return ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.held = slices.DeleteFunc(k.held, func(other *held) bool { return other == h })
		cancel()
	}
}

// Review cuts the requests short whose sessions are not good any more.
func (k *Keeper) Review(good func(Session) bool) {
	k.mu.Lock()
	list := slices.Clone(k.held)
	k.mu.Unlock()
	for _, h := range list {
		if !good(h.session) {
			h.cancel()
		}
	}
}
