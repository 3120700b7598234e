package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
)

// A dropper is a ResponseWriter that drops the database of its request as soon as that has
// found it.
type dropper struct {
	*httptest.ResponseRecorder
	t       *testing.T
	catalog *catalog.Catalog
}

// NoteIdentified implements rest.Noter.
func (d *dropper) NoteIdentified() {}

// Note implements rest.Noter.
func (d *dropper) Note(_, database string) {
	if d.catalog.Drop(database) != nil {
		return // it is noted again
	}
	other, err := d.catalog.Database("closed")
	if err == nil {
		err = other.SetSecrets(context.Background(), secret) // which makes another view
	}
	if err != nil {
		d.t.Error(err)
	}
}

// TestRequestsOfADatabaseThatIsDropped: a request that holds a database when it is dropped
// learns that there is none, not that it is empty or that the server is stopping.
func TestRequestsOfADatabaseThatIsDropped(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 200<<10) + `"`
	for _, c := range []struct{ method, target, body, header string }{
		{"GET", "/.json", "", ""},
		{"GET", "/.json?auth=" + secret, "", ""},
		{"GET", "/a.json?shallow=true", "", ""},
		{"GET", `/a.json?orderBy="$key"&limitToFirst=1`, "", ""},
		{"GET", "/a/.priority.json", "", ""},
		{"GET", "/a.json", "", "X-Firebase-ETag: true"},
		{"GET", "/a.json?explain=true&auth=" + secret, "", ""},
		{"GET", "/a.json", "", "Accept: text/event-stream"},
		{"GET", "/.settings/profile.json?auth=" + secret, "", "Accept: text/event-stream"},
		{"PUT", "/a.json", `1`, ""},
		{"PUT", "/a.json", `1`, "If-Match: null_etag"},
		{"PUT", "/a.json", long, ""},
		{"PUT", "/a.json", long, "If-Match: null_etag"},
		{"PATCH", "/a.json", `{"b":1}`, ""},
		{"POST", "/a.json", `1`, ""},
		{"DELETE", "/a.json", "", ""},
		{"PUT", "/.settings/rules.json?auth=" + secret, `{"rules":{}}`, ""},
		{"PUT", "/.settings/dialect.json?auth=" + secret, `"firebase"`, ""},
	} {
		var databases *catalog.Catalog
		streams := outbox.New(outbox.Options{})
		s := serve(t, func(o *rest.Options) { databases, o.Streams = o.Catalog, streams })
		r := httptest.NewRequest(c.method, "https://localhost"+c.target, strings.NewReader(c.body))
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := &dropper{httptest.NewRecorder(), t, databases}
		s.Config.Handler.ServeHTTP(w, r)
		streams.Close(t.Context())
		got, want := w.Body.String(), "{\n  \"error\" : \"there is no database \\\"default\\\"\"\n}\n"
		if w.Code != http.StatusNotFound || got != want {
			t.Errorf("%s %s %s of a database that was dropped: %d %.80s, want 404 %s", c.method, c.target, c.header, w.Code, got, want)
		}
	}
}
