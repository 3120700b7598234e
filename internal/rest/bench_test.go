package rest_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// BenchmarkGet reads a record of ten fields over HTTPS: from a bare handler that
// answers with the same bytes, from an open database, and under rules. Client and
// server share the process, so the ratio of the servers alone is larger than that
// of the figures.
func BenchmarkGet(b *testing.B) {
	record := `{"a":1,"b":"two","c":3.5,"d":true,"e":"five five five","f":6,"g":"seven","h":8,"i":"nine","j":"` + strings.Repeat("x", 180) + `"}`
	bare := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, record)
	}))
	defer bare.Close()
	b.Run("bare", func(b *testing.B) { get(b, bare.Client(), bare.URL+"/users/ann.json") })
	for _, c := range []struct{ name, rules string }{
		{"open", `{"rules":{".read":true,".write":true}}`},
		{"auth.uid === $uid", `{"rules":{".write":true,"users":{"$uid":{".read":"auth.uid === $uid"}}}}`},
		{"two look-ups", `{"rules":{".write":true,"users":{"$uid":{".read":"root.child('users/' + auth.uid).exists() && root.child('users/ann/d').val() === true"}}}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := serve(b, nil)
			s.expect(
				`PUT /.settings/rules.json?auth=`+secret+` `+c.rules, `200 {"status":"ok"}`,
				`PUT /users/ann.json `+record, `200 `+record,
			)
			get(b, s.Client(), s.URL+`/users/ann.json?auth=`+secret+`&auth_variable_override={"uid":"ann"}`)
		})
	}
}

func get(b *testing.B, client *http.Client, url string) {
	b.Helper()
	// HTTP/1.1 on both sides: HTTP/2 costs twice as much and would hide the rest.
	transport := client.Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = false
	transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	client = &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	b.ReportAllocs()
	start := cpu(b)
	for b.Loop() {
		answer, err := client.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			b.Fatal(answer.Status, err)
		}
		_ = answer.Body.Close()
	}
	b.ReportMetric(float64((cpu(b)-start).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkHandler is what the handler adds to a request, without HTTP around it.
func BenchmarkHandler(b *testing.B) {
	var opts rest.Options
	s := serve(b, func(o *rest.Options) { opts = *o })
	s.expect(`PUT /a.json {"b":{"c":"text"}}`, `200 {"b":{"c":"text"}}`,
		"PUT /long.json?print=silent ["+strings.Repeat(`"an element of a list",`, 3000)+"1]", "204")
	handler := rest.New(opts)
	for _, bench := range []struct{ name, method, target, body string }{
		{"get", "GET", "/a/b.json", ""},
		{"get-long", "GET", "/long.json", ""},
		{"get-absent", "GET", "/none.json", ""},
		{"get-denied", "GET", "/a.json?ns=closed", ""},
		{"get-secret", "GET", "/a.json?auth=" + secret, ""},
		{"put", "PUT", "/x.json", `{"y":1}`},
		{"patch", "PATCH", "/x.json", `{"y":1}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			w := &blankWriter{header: http.Header{}}
			body := strings.NewReader(bench.body)
			r := httptest.NewRequest(bench.method, "https://localhost"+bench.target, body)
			for b.Loop() {
				clear(w.header)
				body.Reset(bench.body)
				handler.ServeHTTP(w, r)
			}
		})
	}
}

// A blankWriter throws answers away.
type blankWriter struct{ header http.Header }

func (w *blankWriter) Header() http.Header         { return w.header }
func (w *blankWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *blankWriter) WriteHeader(int)             {}
