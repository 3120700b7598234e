package rest

import (
	"net/http"

	"github.com/livetree/livetree/internal/tree"
)

// A question is what a request asks for, as far as it was read.
type question struct {
	verb   verb
	target target
	params params
}

// path returns the location that is asked for.
func (q *question) path() tree.Path { return q.target.path }

// ask reads what a request asks for, but for the parameters that shape the answer:
// which of them there are depends on the database.
func (q *question) ask(r *http.Request) (values values, err error) {
	if q.verb, err = verbOf(r.Method); err != nil {
		return nil, err
	}
	if values, err = parseQuery(r.URL.RawQuery); err != nil {
		return nil, err
	}
	if q.verb, err = override(q.verb, r.Header, values); err != nil {
		return nil, err
	}
	if q.target, err = parseTarget(escapedPath(r.URL)); err != nil {
		return nil, err
	}
	if q.target.upload {
		if q.verb != post {
			return nil, errUploadMethod
		}
		q.verb = put
	}
	return values, nil
}
