package outbox

import "errors"

// A Reason is why a client has ended, as the metrics count it.
type Reason string

// The reasons.
const (
	GoesOn    Reason = "" // it has not ended
	ByClient  Reason = "client"
	Slow      Reason = "slow"
	Cancelled Reason = "cancelled"
	Revoked   Reason = "revoked"
	Behind    Reason = "behind"
	Damaged   Reason = "damaged"
	Draining  Reason = "draining"
	Crowded   Reason = "crowded" // a stranger whose place another one needs
)

// Why returns the reason for a client to end that lies in what Send returned.
func Why(err error) Reason {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return GoesOn
	case errors.Is(err, ErrSlow), errors.As(err, &timeout) && timeout.Timeout():
		return Slow
	default:
		return ByClient
	}
}
