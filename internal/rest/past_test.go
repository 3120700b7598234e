package rest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rest"
)

// TestPast reads a database as it was, which another database stands for here, with all that
// a read can ask for. It is for the operator alone, and each moment is left again.
func TestPast(t *testing.T) {
	t.Parallel()
	var looking atomic.Int32
	s := serve(t, func(o *rest.Options) {
		o.Past = func(_ context.Context, d *engine.Database, at time.Time) (*engine.Database, func(), error) {
			if d.Name() != "default" || at.UnixMilli() != 1794751500000 {
				return nil, nil, fault.New(fault.Unavailable, "another moment is being made, try again")
			}
			looking.Add(1)
			was, err := o.Catalog.Database("closed")
			return was, func() { looking.Add(-1) }, err
		}
	})
	a, at := "auth="+secret, "at=2026-11-15T14:05:00Z"
	s.expect(
		`PUT /p.json {"ann":1}`, `200 {"ann":1}`,
		`PUT /p.json?ns=closed&`+a+` {"ann":{".value":0,".priority":2},"ben":2}`, `200 {"ann":0,"ben":2}`,
		`GET /p.json?`+at+"&"+a, `200 {"ann":0,"ben":2}`,
		`GET /p.json?at=1794751500000&format=export&`+a, `200 {"ann":{".value":0,".priority":2},"ben":2}`,
		`GET /p.json?`+at+"&shallow=true&"+a, `200 {"ann":true,"ben":true}`,
		`GET /p.json?`+at+`&orderBy="$key"&limitToLast=1&`+a, `200 {"ben":2}`,
		`GET /p/ann/.priority.json?`+at+"&"+a, `200 2`,
		`GET /p.json?`+a, `200 {"ann":1}`,
		`GET /p.json?`+at, `403 `+errorBody("Permission denied"),
		`GET /p.json?`+at+`&auth_variable_override={"uid":"ann"}&`+a, `403 `+errorBody("Permission denied"),
		`PUT /p.json?`+at+"&"+a+" 1", `400 `+errorBody("the parameter at works with GET only"),
		"GET /p.json?"+at+"&"+a+"\nAccept: text/event-stream", `400 `+errorBody("at cannot be used with a stream: the past does not change"),
		`GET /p.json?at=yesterday&`+a, `400 `+errorBody("at must be a time like 2026-11-15T14:05:00Z, or milliseconds since 1970"),
		`GET /p.json?at=-1&`+a, `400 `+errorBody("at must be a time like 2026-11-15T14:05:00Z, or milliseconds since 1970"),
		`GET /p.json?at=5&`+a, `503 `+errorBody("another moment is being made, try again"),
		`GET /p.json?`+at+"&ns=nowhere&"+a, `404 `+errorBody("there is no database \\\"nowhere\\\""),
	)
	if n := looking.Load(); n != 0 {
		t.Errorf("%d moments were not left", n)
	}
	serve(t, nil).expect(`GET /p.json?`+at+"&"+a, `400 `+errorBody("at cannot be used: this server has no archive (livetree serve --archive)"))
}
