package rest

import "net/http"

// The routes that a request can take.
const (
	RouteData   = "data"
	RouteRules  = "rules"
	RouteStream = "stream"
)

// A Noter is a ResponseWriter that is told what a request turned out to be: its
// route, and its database, which is there. The last word counts.
type Noter interface {
	Note(route, database string)
}

// note tells the Noter around a ResponseWriter, if there is one.
func note(w http.ResponseWriter, route, database string) {
	for {
		if n, ok := w.(Noter); ok {
			n.Note(route, database)
			return
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = inner.Unwrap()
	}
}

// route returns the route to a target.
func (t target) route() string {
	if t.special() {
		return RouteRules
	}
	return RouteData
}
