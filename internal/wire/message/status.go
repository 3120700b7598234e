package message

import (
	"errors"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
)

// The status words of replies. SDKs know them.
const (
	StatusOK           = "ok"
	statusDenied       = "permission_denied"
	statusStale        = "datastale"
	statusInvalidToken = "invalid_token"
	statusExpiredToken = "expired_token"
	statusInvalid      = "invalid_parameters"
	statusTooBig       = "too_big"
	statusUnavailable  = "unavailable"
	statusFailure      = "failure"
)

// expiredText is what clients are told of a login whose time is over.
const expiredText = "Auth token is expired."

// statuses are the status words for each kind of failure. A fault.Unknown has none: the
// client must not take any answer for an outcome.
var statuses = map[fault.Kind]string{
	fault.Internal:        statusFailure,
	fault.Invalid:         statusInvalid,
	fault.TooLarge:        statusTooBig,
	fault.Unauthenticated: statusInvalidToken,
	fault.Denied:          statusDenied,
	fault.NotFound:        statusFailure,
	fault.Conflict:        statusFailure,
	fault.Precondition:    statusStale,
	fault.Unavailable:     statusUnavailable,
	fault.ReadOnly:        statusUnavailable,
	fault.Corrupt:         statusFailure,
}

// Status returns the status word and the text that a failure is answered with. The word
// is empty for a failure that must not be answered.
func Status(err error) (status, text string) {
	status, text = statuses[fault.KindOf(err)], fault.Public(err)
	switch {
	case IsUnknownAction(err), errors.Is(err, query.ErrNoIndex):
		status = statusFailure
	case status == statusStale:
		text = "Transaction hash does not match"
	case errors.Is(err, auth.ErrExpired):
		status, text = statusExpiredToken, expiredText
	}
	return status, text
}
