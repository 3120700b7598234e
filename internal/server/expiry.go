package server

import (
	"github.com/livetree/livetree/internal/expiry"
	"github.com/livetree/livetree/internal/state"
)

// newExpirer returns what deletes data whose time is over, and has it counted.
func newExpirer(c Config, clock *state.Clock, m *state.Metrics) *expiry.Worker {
	w := expiry.New(clock, c.Logger, func() { m.ExpiryFailures.Add(1) })
	m.Late = w.Late
	return w
}
