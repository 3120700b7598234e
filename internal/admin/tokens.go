package admin

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/session"
)

const (
	// maxTokenLife bounds how long a token is good, and usualTokenLife is how long
	// one is that says nothing of it.
	maxTokenLife   = 24 * time.Hour
	usualTokenLife = time.Hour
)

// A TokenRequest asks for a token of a user, or of an administrator.
type TokenRequest struct {
	UID      string         `json:"uid"`
	Claims   map[string]any `json:"claims"`
	Expires  int64          `json:"expires"` // in seconds from now; an hour if it is 0
	Admin    bool           `json:"admin"`
	Debug    bool           `json:"debug"`
	Simulate bool           `json:"simulate"`
}

// makeToken answers with a token that is signed with the first secret of the database, or
// with the one that the caller's session rests on: it must not outlive that.
func (h *Handler) makeToken(w http.ResponseWriter, r *http.Request) {
	var request TokenRequest
	err := body(r, &request)
	var token string
	var expires time.Time
	if err == nil {
		token, expires, err = h.opts.mint(r.PathValue("name"), request, callerOf(r).session)
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	subject := request.UID
	if request.Admin {
		subject = "administrator " + subject
	}
	h.audit(r, "made a token", r.PathValue("name"), strings.TrimSpace(subject))
	answer(w, http.StatusCreated, map[string]any{"token": token, "expires": expires.UTC()})
}

func (o *Options) mint(name string, q TokenRequest, by *session.Session) (token string, expires time.Time, err error) {
	database, err := o.Catalog.Database(name)
	if err != nil {
		return "", expires, err
	}
	life := time.Duration(q.Expires) * time.Second
	if q.Expires == 0 {
		life = usualTokenLife
	}
	if q.Expires < 0 || q.Expires > int64(maxTokenLife/time.Second) {
		return "", expires, fault.New(fault.Invalid, "expires must be seconds from now, at most %d", int64(maxTokenLife/time.Second))
	}
	secrets := database.Secrets()
	if by != nil && by.Scope == session.Database {
		secrets = slices.DeleteFunc(slices.Clone(secrets), func(secret string) bool { return !o.Sessions.RestsOn(*by, []string{secret}) })
	}
	if len(secrets) == 0 {
		return "", expires, fault.New(fault.Conflict, "the database has no secret to sign a token with: add one first")
	}
	data := map[string]any{}
	for name, claim := range q.Claims {
		data[name] = claim
	}
	if q.UID != "" {
		data["uid"] = q.UID
	}
	if q.Admin && len(data) == 0 {
		data = nil
	}
	expires = time.Unix(o.Now().Add(life).Unix(), 0) // tokens know seconds
	token, err = auth.Mint(secrets[0], auth.Claims{Data: data, Expires: expires, Admin: q.Admin, Debug: q.Debug, Simulate: q.Simulate})
	if err != nil {
		return "", expires, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	return token, expires, nil
}
