package admin

import "github.com/livetree/livetree/internal/shares"

// A Route is a route as tests see it.
type Route struct {
	Pattern string
	// ByDatabase says that a session of a database may use it, ByCredential that no
	// session may.
	ByDatabase, ByCredential bool
}

// Routes returns all routes that are not for everybody.
func (h *Handler) Routes() []Route {
	var list []Route
	for _, r := range h.routes() {
		list = append(list, Route{r.pattern, r.access == byDatabase, r.access == byCredential})
	}
	return list
}

// DataPattern is the route to the tree of a database.
const DataPattern = dataPattern

// HasStream reports whether a connection of the listener is known to have a stream.
func (l *Listener) Streams() int {
	bounded, ok := l.tcp.(*connections)
	if !ok {
		return -1
	}
	bounded.mu.Lock()
	defer bounded.mu.Unlock()
	n := 0
	for _, c := range bounded.open {
		if c.streams {
			n++
		}
	}
	return n
}

// Sample takes a sample for the history.
func (h *Handler) Sample() { h.history.sample() }

// SetMaxBytes shrinks the file of an audit list.
func (a *Audit) SetMaxBytes(n int64) { a.maxBytes = n }

// HoldCases has a database, or the operator, run cases until leave is called.
func (h *Handler) HoldCases(database string) (leave func(), ok bool) {
	return h.rules.suites.Enter(shares.Who{Session: "another", Group: database})
}

// HoldSimulation has a database, or the operator, simulate until leave is called.
func (h *Handler) HoldSimulation(database string) (leave func(), ok bool) {
	return h.rules.simulations.Enter(shares.Who{Session: "another", Group: database})
}

// ShareOut returns the entries that stay where there is room for some.
func ShareOut(list []Audited, room int64) []Audited {
	return shareOut(list, room, func(Audited) int64 { return 1 })
}
