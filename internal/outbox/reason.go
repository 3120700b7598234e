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
	Moved     Reason = "moved"   // another node has the sessions of the database now
	Crowded   Reason = "crowded" // a stranger whose place another one needs
)

// Why returns the reason for a client to end that lies in what Send returned. It is asked for each
// event to each client, and takes no memory if there is no error.
func Why(err error) Reason {
	if err == nil {
		return GoesOn
	}
	return whyNot(err)
}

// whyNot is Why if there is an error.
func whyNot(err error) Reason {
	var timeout interface{ Timeout() bool }
	if errors.Is(err, ErrSlow) || errors.As(err, &timeout) && timeout.Timeout() {
		return Slow
	}
	return ByClient
}
