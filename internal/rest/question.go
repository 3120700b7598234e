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

	given values // the parameters
	few   [fewParams]value
}

// path returns the location that is asked for.
func (q *question) path() tree.Path { return q.target.path }

// ask reads what a request asks for, but for the parameters that shape the answer:
// which of them there are depends on the database.
func (q *question) ask(r *http.Request) (err error) {
	if q.verb, err = verbOf(r.Method); err != nil {
		return err
	}
	if err = q.readQuery(r); err != nil {
		return err
	}
	if q.verb, err = override(q.verb, r.Header, q.given); err != nil {
		return err
	}
	if q.target, err = parseTarget(escapedPath(r.URL)); err != nil {
		return err
	}
	if q.target.upload {
		if q.verb != post {
			return errUploadMethod
		}
		q.verb = put
	}
	return nil
}

// readQuery reads the parameters.
func (q *question) readQuery(r *http.Request) (err error) {
	q.given, err = parseQuery(r.URL.RawQuery, q.few[:0])
	return err
}
