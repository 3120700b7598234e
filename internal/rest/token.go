package rest

import (
	"encoding/json"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

// This file is the token endpoint (RFC 6749, 3.2): service accounts exchange
// assertions for access tokens here. Key files name the first path, and
// firebase-tools knows the second.
var tokenPaths = []string{"/oauth2/token", "/oauth2/v3/token"}

const (
	jwtBearer    = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	refreshToken = "refresh_token"
	// maxTokenForm bounds the body, tokenFormTime how long it may take.
	maxTokenForm  = 64 << 10
	tokenFormTime = 10 * time.Second
)

// An oauthError is a refusal in the words of OAuth.
type oauthError struct {
	status int
	code   string // error
	text   string // error_description
}

func (e *oauthError) Error() string { return e.text }

func badForm(text string) error {
	return &oauthError{http.StatusBadRequest, "invalid_request", text}
}

// token answers a request to the token endpoint.
func (c *call) token() {
	header := c.w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Pragma", "no-cache")
	access, err := c.grant()
	if err != nil {
		c.failToken(err)
		return
	}
	answerJSON(c.w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}{access, "Bearer", int(auth.AccessLifetime.Seconds())})
}

// grant returns the access token that the request is worth.
func (c *call) grant() (string, error) {
	if c.r.Method != http.MethodPost {
		c.w.Header().Set("Allow", "POST, OPTIONS")
		return "", &oauthError{http.StatusMethodNotAllowed, "invalid_request", "the token endpoint knows POST only"}
	}
	form, err := c.tokenForm()
	if err != nil {
		return "", err
	}
	switch form["grant_type"] {
	case jwtBearer:
		return c.exchange(form["assertion"])
	case refreshToken:
		// What firebase-tools asks for with the token of a login. Anywhere else it
		// takes the refusal as a hint that its token is an access token already.
		if c.ownerAllowed() {
			return owner, nil
		}
	}
	return "", &oauthError{http.StatusBadRequest, "unsupported_grant_type", "grant_type must be " + jwtBearer}
}

// exchange returns an access token for an assertion.
func (c *call) exchange(assertion string) (string, error) {
	if assertion == "" {
		return "", badForm("the parameter assertion is missing")
	}
	name, err := auth.AssertedDatabase(assertion)
	if err != nil {
		return "", err
	}
	database, err := c.opts.Catalog.Database(name)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Invalid {
		return "", auth.UnknownAccount()
	}
	if err != nil {
		return "", err
	}
	return database.Grant(assertion, c.isTokenURI)
}

// isTokenURI reports whether an audience is the token endpoint as the client has
// reached it: with the host that the request is for, which must be a name that
// the server was given, or this machine's own. The header Host alone would prove
// nothing, as whoever replays an assertion can set it.
func (c *call) isTokenURI(audience string) bool {
	u, err := url.Parse(audience)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !slices.Contains(tokenPaths, u.EscapedPath()) {
		return false
	}
	local := isThisMachine(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return false
	}
	if !strings.EqualFold(hostname(u.Host), hostname(c.r.Host)) || portOf(u.Host, u.Scheme) != portOf(c.r.Host, u.Scheme) {
		return false
	}
	return local || c.isOurName(strings.ToLower(u.Hostname()))
}

// isOurName reports whether the server was configured with a host name.
func (h *Handler) isOurName(name string) bool {
	if _, ok := h.opts.HostMap[name]; ok {
		return true
	}
	domain := strings.ToLower(h.opts.Domain)
	return domain != "" && (name == domain || strings.HasSuffix(name, "."+domain))
}

func isThisMachine(name string) bool {
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}

func portOf(host, scheme string) string {
	if port := (&url.URL{Host: host}).Port(); port != "" {
		return port
	}
	return map[string]string{"https": "443", "http": "80"}[scheme]
}

// tokenForm reads the parameters in the body, each of which stands there once.
func (c *call) tokenForm() (map[string]string, error) {
	if c.r.ContentLength > maxTokenForm {
		c.unread = true
		return nil, badForm("the body is too large")
	}
	// Errors are of writers that know no deadlines: those of tests.
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(c.opts.Now().Add(tokenFormTime))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxTokenForm)
	form, err := readForm(c.r)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		c.unread = true
		return nil, badForm("the body is too large: " + tooLarge.Error())
	}
	if err != nil {
		return nil, err
	}
	parameters := make(map[string]string, len(form))
	for name, list := range form {
		if len(list) != 1 {
			return nil, badForm("a parameter is repeated")
		}
		parameters[name] = list[0]
	}
	return parameters, nil
}

// readForm reads a body as either of the two kinds of forms. Errors do not show
// what is in it.
func readForm(r *http.Request) (url.Values, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return nil, formError(err)
		}
		return r.PostForm, nil
	case "multipart/form-data":
		if err := r.ParseMultipartForm(maxTokenForm); err != nil {
			return nil, formError(err)
		}
		files := len(r.MultipartForm.File)
		values := r.MultipartForm.Value
		if err := r.MultipartForm.RemoveAll(); err != nil || files > 0 {
			return nil, badForm("the form must not hold files")
		}
		return values, nil
	}
	return nil, badForm("the body must be a form: application/x-www-form-urlencoded or multipart/form-data")
}

func formError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return badForm("the form cannot be parsed")
}

// failToken answers with an error in the form of OAuth.
func (c *call) failToken(err error) {
	failure, ok := errors.AsType[*oauthError](err)
	if !ok {
		failure = &oauthError{http.StatusInternalServerError, "server_error", fault.Public(err)}
		switch fault.KindOf(err) {
		case fault.Unauthenticated:
			failure.status, failure.code = http.StatusBadRequest, "invalid_grant"
		case fault.Unavailable:
			failure.status, failure.code = http.StatusServiceUnavailable, "temporarily_unavailable"
			c.w.Header().Set("Retry-After", "1")
		default:
			c.opts.Logger.Error("an access token was not granted", "request", c.w.Header().Get("X-Request-Id"), "error", err)
		}
	}
	if c.unread {
		c.w.Header().Set("Connection", "close")
	}
	answerJSON(c.w, failure.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{failure.code, failure.text})
}

// answerJSON sends a small value. None of those there are fails to encode.
func answerJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		writeError(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(text) // nobody is left to be told
}
