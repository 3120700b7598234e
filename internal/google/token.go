package google

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/rest"
)

// tokenPaths are those of the token endpoint. Key files name the first, and
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

// A tokenRequest is one to the token endpoint.
type tokenRequest struct {
	*rest.Request
	*Endpoints
	unread bool // the body was not read to its end
}

func (t *tokenRequest) answer() {
	header := t.W.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Pragma", "no-cache")
	access, err := t.grant()
	if err != nil {
		t.failToken(err)
		return
	}
	answerJSON(t.W, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}{access, "Bearer", int(auth.AccessLifetime.Seconds())})
}

// grant returns the access token that the request is worth.
func (t *tokenRequest) grant() (string, error) {
	if t.R.Method != http.MethodPost {
		t.W.Header().Set("Allow", "POST, OPTIONS")
		return "", &oauthError{http.StatusMethodNotAllowed, "invalid_request", "the token endpoint knows POST only"}
	}
	form, err := t.tokenForm()
	if err != nil {
		return "", err
	}
	switch form["grant_type"] {
	case jwtBearer:
		return t.exchange(form["assertion"])
	case refreshToken:
		// What firebase-tools asks for with the token of a login. Anywhere else it
		// takes the refusal as a hint that its token is an access token already.
		if t.OwnerAllowed() {
			return dev.Owner, nil
		}
	}
	return "", &oauthError{http.StatusBadRequest, "unsupported_grant_type", "grant_type must be " + jwtBearer}
}

// exchange returns an access token for an assertion.
func (t *tokenRequest) exchange(assertion string) (string, error) {
	if assertion == "" {
		return "", badForm("the parameter assertion is missing")
	}
	name, err := auth.AssertedDatabase(assertion)
	if err != nil {
		return "", err
	}
	database, err := t.opts.Catalog.Database(name)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Invalid {
		return "", auth.UnknownAccount()
	}
	if err != nil {
		return "", err
	}
	return database.Grant(assertion, t.isTokenURI)
}

// isTokenURI reports whether an audience is the token endpoint as the client has
// reached it: with the host that the request is for, which must be a name that
// the server was given, or this machine's own. The header Host alone would prove
// nothing, as whoever replays an assertion can set it.
func (t *tokenRequest) isTokenURI(audience string) bool {
	u, err := url.Parse(audience)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !slices.Contains(tokenPaths, u.EscapedPath()) {
		return false
	}
	local := loopback.Host(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return false
	}
	if !strings.EqualFold(u.Hostname(), (&url.URL{Host: t.R.Host}).Hostname()) || portOf(u.Host, u.Scheme) != portOf(t.R.Host, u.Scheme) {
		return false
	}
	return local || t.opts.Hosts.Include(strings.ToLower(u.Hostname()))
}

func portOf(host, scheme string) string {
	if port := (&url.URL{Host: host}).Port(); port != "" {
		return port
	}
	return map[string]string{"https": "443", "http": "80"}[scheme]
}

// tokenForm reads the parameters in the body, each of which stands there once.
func (t *tokenRequest) tokenForm() (map[string]string, error) {
	if t.R.ContentLength > maxTokenForm {
		t.unread = true
		return nil, badForm("the body is too large")
	}
	// Errors are of writers that know no deadlines: those of tests. It stays: of a form that
	// is refused, net/http waits for the rest.
	_ = http.NewResponseController(t.W).SetReadDeadline(t.opts.Now().Add(tokenFormTime))
	t.R.Body = http.MaxBytesReader(t.W, t.R.Body, maxTokenForm)
	form, err := readForm(t.R)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		t.unread = true
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
func (t *tokenRequest) failToken(err error) {
	failure, ok := errors.AsType[*oauthError](err)
	if !ok {
		failure = &oauthError{http.StatusInternalServerError, "server_error", fault.Public(err)}
		switch fault.KindOf(err) {
		case fault.Unauthenticated:
			failure.status, failure.code = http.StatusBadRequest, "invalid_grant"
		case fault.Unavailable:
			failure.status, failure.code = http.StatusServiceUnavailable, "temporarily_unavailable"
			t.W.Header().Set("Retry-After", "1")
		default:
			t.opts.Logger.Error("an access token was not granted", "request", t.W.Header().Get(exchange.IDHeader), "error", err)
		}
	}
	if t.unread {
		t.W.Header().Set("Connection", "close")
	}
	answerJSON(t.W, failure.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{failure.code, failure.text})
}
