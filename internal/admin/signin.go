package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/console"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/session"
)

// A door lets people sign in and out.
type door struct {
	opts  *Options
	fail  func(http.ResponseWriter, error)
	note  func(Audited)
	brake *session.Brake
	codes session.Codes
	ended func(id string) // is told of sessions that have signed out
}

// A SignedIn is the answer to who has signed in.
type SignedIn struct {
	Session  string         `json:"session"`
	Scope    session.Scope  `json:"scope"`
	Database string         `json:"database,omitempty"`
	Expires  time.Time      `json:"expires"`
	Dev      bool           `json:"dev"`
	Label    *console.Label `json:"label,omitempty"`
}

// signIn exchanges a credential, or a code, for a session. The right one is answered at
// once, however many guess.
func (d *door) signIn(w http.ResponseWriter, r *http.Request) {
	if missing(w, d.opts.Sessions == nil) {
		return
	}
	var request struct {
		Credential string `json:"credential"`
		Database   string `json:"database"`
		Code       string `json:"code"`
	}
	if err := body(r, &request); err != nil {
		d.fail(w, err)
		return
	}
	if (request.Credential == "") == (request.Code == "") {
		d.fail(w, fault.New(fault.Invalid, "send a credential or a code"))
		return
	}
	var s session.Session
	var text string
	ok := false
	if request.Code != "" {
		if ok = d.codes.Take(request.Code, d.opts.Now()); ok {
			s, text = d.opts.Sessions.BeginOperator()
		}
	} else {
		s, text, ok = d.exchange(request.Credential, request.Database)
	}
	if !ok {
		d.refuse(w, r)
		return
	}
	d.note(Audited{Action: "signed in", Database: s.Database, Scope: s.Scope, Session: s.ID})
	answer(w, http.StatusCreated, SignedIn{text, s.Scope, s.Database, s.Expires.UTC(), d.opts.Dev, d.label()})
}

// exchange begins the session that a credential stands for: the operator's, or a secret
// of a database.
func (d *door) exchange(credential, name string) (s session.Session, text string, ok bool) {
	if d.opts.isCredential(credential) {
		s, text = d.opts.Sessions.BeginOperator()
		return s, text, true
	}
	if name == "" {
		name = d.opts.DefaultDatabase
	}
	if catalog.CheckName(name) != nil {
		return s, "", false
	}
	database, err := d.opts.Catalog.Database(name)
	if err != nil {
		return s, "", false
	}
	given := sha256.Sum256([]byte(credential))
	for _, secret := range database.Secrets() {
		want := sha256.Sum256([]byte(secret))
		if secret != "" && subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
			s, text = d.opts.Sessions.BeginDatabase(name, secret)
			return s, text, true
		}
	}
	return s, "", false
}

// refuse answers who has shown nothing that opens anything. It does not say whether
// there is such a database.
func (d *door) refuse(w http.ResponseWriter, r *http.Request) {
	if !d.brake.Refuse(r.Context()) {
		w.Header().Set("Retry-After", "1")
		exchange.Fail(w, http.StatusTooManyRequests, "too many credentials are being refused at the moment, try again")
		return
	}
	d.opts.Logger.Warn("a sign-in was refused", "remote", r.RemoteAddr)
	exchange.Fail(w, http.StatusUnauthorized, "the credential, or the code, is refused")
}

// label names the server in the console; nil if it has no name.
func (d *door) label() *console.Label {
	if d.opts.Label.Text == "" {
		return nil
	}
	return &d.opts.Label
}

// signOut ends the session of the request.
func (d *door) signOut(w http.ResponseWriter, r *http.Request) {
	s := callerOf(r).session
	if s == nil {
		d.fail(w, fault.New(fault.Invalid, "this is the credential itself, which has no session to end"))
		return
	}
	if err := d.opts.Sessions.End(*s); err != nil {
		d.fail(w, err)
		return
	}
	d.ended(s.ID)
	d.note(Audited{Action: "signed out", Database: s.Database, Scope: s.Scope, Session: s.ID})
	answer(w, http.StatusOK, map[string]string{"ended": s.ID})
}

// A Code is the answer to who asks for a link that signs in.
type Code struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// drawCode answers with a link to the console that signs in once.
func (d *door) drawCode(w http.ResponseWriter, r *http.Request) {
	if missing(w, d.opts.Console == nil || d.opts.Sessions == nil) {
		return
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	answer(w, http.StatusCreated, d.link(scheme+r.Host))
}

// link returns a link to the console, at the URL of the listener, that signs the
// operator in once, soon. The code is in the fragment, which browsers send to nobody.
func (d *door) link(listener string) Code {
	code, expires := d.codes.Draw(d.opts.Now())
	return Code{listener + console.Root + "#code=" + code, expires.UTC()}
}
