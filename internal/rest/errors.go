package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
)

// A refusal is an error of HTTP itself, which other fronts do not know.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

const invalidPath = "Invalid path: Invalid token in path"

var (
	errMethod        = &refusal{http.StatusMethodNotAllowed, "the method is not GET, HEAD, PUT, POST, PATCH, DELETE or OPTIONS"}
	errRulesMethod   = &refusal{http.StatusMethodNotAllowed, "the rules document knows GET and PUT"}
	errOptionMethod  = &refusal{http.StatusMethodNotAllowed, "a setting knows GET and PUT"}
	errInspectMethod = &refusal{http.StatusMethodNotAllowed, "the list of databases knows GET"}
	errProfileMethod = &refusal{http.StatusMethodNotAllowed, "the stream of operations knows GET"}
	errUploadMethod  = &refusal{http.StatusMethodNotAllowed, "an upload is sent with POST"}
	errNoSetting     = &refusal{http.StatusNotFound, "there is no setting of this name"}
	errNoSuffix      = &refusal{http.StatusNotFound, "append .json to your request URI to use the REST API"}
	errPath          = &refusal{http.StatusBadRequest, invalidPath}
	errNoDatabase    = &refusal{http.StatusExpectationFailed, "the request names no database: use the parameter ns or a host name of its own"}
	errEncoding      = &refusal{http.StatusUnsupportedMediaType, "a Content-Encoding is not supported: send the body as it is"}
	errSlowBody      = &refusal{http.StatusRequestTimeout, "the body came too slowly"}
	errPlainHTTP     = &refusal{http.StatusNotFound, "use HTTPS: this server does not answer plain HTTP requests"}
)

// statuses are the answers to each kind of failure.
var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.TooLarge:        http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Denied:          http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Precondition:    http.StatusPreconditionFailed,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.ReadOnly:        http.StatusInsufficientStorage,
	fault.Corrupt:         http.StatusInternalServerError,
}

// retryAfterSeconds is the advice that goes with answers that may get better.
const retryAfterSeconds = 1

// fail answers with an error. Nothing of the answer may have been sent.
func (a *reply) fail(err error) {
	if isTakenBack(a.r) {
		abort() // whatever it is, it cannot be told, nor is it for the log
	}
	if fault.KindOf(err) == fault.Unknown {
		// The client must not take any status for an outcome.
		a.logger.Warn("a write is not confirmed", "request", a.w.Header().Get(exchange.IDHeader), "path", a.loggedPath(), "error", exchange.Redact(err.Error()))
		abort()
	}
	status, text := answer(err)
	if fault.KindOf(err) == fault.Denied {
		status = a.dialect.denied
	}
	if status >= http.StatusInternalServerError && !isGone(a.r, err) {
		a.logFailure(status, err)
	}
	header := a.w.Header()
	if status == http.StatusServiceUnavailable || status == http.StatusInsufficientStorage {
		header.Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	if status == http.StatusMethodNotAllowed {
		header.Set("Allow", a.asked.target.methods())
	}
	if a.body.unread {
		a.failUnread(status, text)
		return
	}
	a.usage.release() // what was read, or was to be shown
	exchange.Fail(a.w, status, text)
	a.settle()
}

// loggedPath returns the path for the log.
func (a *reply) loggedPath() string { return exchange.Redact(a.asked.path().String()) }

// logFailure tells the log of a failure of the server. Overload is told now and then,
// with how many requests it refused: one client can bring it about as often as it likes.
func (a *reply) logFailure(status int, err error) {
	level, refused := slog.LevelWarn, 1
	switch status {
	case http.StatusInternalServerError:
		level = slog.LevelError
	case http.StatusInsufficientStorage:
		level = slog.LevelDebug // the store has said it, and a log takes space, too
	case http.StatusServiceUnavailable:
		var tell bool
		if refused, tell = a.overload.Count(a.now()); !tell {
			return
		}
	}
	a.logger.Log(a.r.Context(), level, "request failed", "request", a.w.Header().Get(exchange.IDHeader), "method", a.r.Method,
		"path", a.loggedPath(), "status", status, "error", exchange.Redact(err.Error()), "times", refused)
}

// answer returns the status and the text for an error.
func answer(err error) (int, string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, r.text
	}
	return statuses[fault.KindOf(err)], fault.Public(err)
}

// RefusePlainHTTP answers every request as plain HTTP is answered.
func RefusePlainHTTP(w http.ResponseWriter, _ *http.Request) {
	exchange.Fail(w, errPlainHTTP.status, errPlainHTTP.text)
}
