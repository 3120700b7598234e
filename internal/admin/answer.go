package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
)

// statuses are the answers to each kind of failure; others are answered 500.
var statuses = map[fault.Kind]int{
	fault.Invalid:      http.StatusBadRequest,
	fault.TooLarge:     http.StatusRequestEntityTooLarge,
	fault.NotFound:     http.StatusNotFound,
	fault.Conflict:     http.StatusConflict,
	fault.Precondition: http.StatusPreconditionFailed,
	fault.Unavailable:  http.StatusServiceUnavailable,
	fault.ReadOnly:     http.StatusInsufficientStorage,
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		exchange.Fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header()["Content-Type"] = exchange.JSONTypes
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // nobody is left to be told
}

// failWith answers with the public text of an error; the rest goes to the log.
func (h *Handler) failWith(w http.ResponseWriter, err error) {
	status, ok := statuses[fault.KindOf(err)]
	if !ok {
		status = http.StatusInternalServerError
		h.opts.Logger.Error("an admin request failed", "error", err)
	}
	exchange.Fail(w, status, fault.Public(err))
}

// orFail returns a handler that answers with the error of another.
func orFail(fail func(http.ResponseWriter, error), next func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := next(w, r); err != nil {
			fail(w, err)
		}
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	exchange.Fail(w, http.StatusNotFound, "there is no such thing here: see /livez, /readyz, /metrics, /debug/pprof/ and /v1/")
}

// bodyText reads the body of a request as text.
func bodyText(r *http.Request) (string, error) {
	text, err := io.ReadAll(r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", fault.Wrap(fault.TooLarge, err, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", fault.Wrap(fault.Invalid, err, "the body came too slowly")
	}
	return string(text), err
}

// body reads the JSON body of a request, in which there may be nothing that is
// not asked for.
func body(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.Wrap(fault.TooLarge, err, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.Wrap(fault.Invalid, err, "the body came too slowly")
	}
	if err != nil || decoder.More() {
		// Not the error itself: it may show a part of a secret.
		return fault.Wrap(fault.Invalid, err, "the body is not the JSON object that is expected here")
	}
	return nil
}
