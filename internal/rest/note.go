package rest

import "net/http"

// The routes that a request can take.
const (
	RouteData   = "data"
	RouteRules  = "rules"
	RouteStream = "stream"
)

// A Noter is a ResponseWriter that is told what a request turned out to be.
type Noter interface {
	// Note says its route, and its database, which exists. The last word counts.
	Note(route, database string)
	// NoteIdentified says that its credential is good.
	NoteIdentified()
}

// note tells a ResponseWriter that is a Noter.
func note(w http.ResponseWriter, route, database string) {
	if n, ok := w.(Noter); ok {
		n.Note(route, database)
	}
}

// noteIdentified tells it that the credential of the request is good.
func noteIdentified(w http.ResponseWriter) {
	if n, ok := w.(Noter); ok {
		n.NoteIdentified()
	}
}

// route returns the route to a target.
func (t target) route() string {
	if t.isData() {
		return RouteData
	}
	return RouteRules
}
