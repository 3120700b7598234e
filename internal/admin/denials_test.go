package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/denials"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/rules"
)

// newDenials returns a stand, and its list of denials.
func newDenials(t *testing.T) (*stand, *denials.Board) {
	var board *denials.Board
	s := newShops(t, func(o *admin.Options) { board = &o.Engine.Denials })
	return s, board
}

func (s *stand) shop() *engine.Database {
	s.t.Helper()
	d, err := s.catalog.Database("shop")
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// asked returns the request of an entry as one to simulate.
func asked(e denials.Entry) admin.SimulationRequest {
	return admin.SimulationRequest{Operation: e.Verb, Path: e.Path, Auth: json.RawMessage(e.Auth), Data: e.Data, Query: e.Query}
}

// TestDenialsCanBeSimulated: of random requests exactly those that are denied are listed, once
// each, and a simulation of what is listed is denied by the same rule after the same ones.
func TestDenialsCanBeSimulated(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &chance{rand.New(rand.NewPCG(seed, 1))}
	s, board := newDenials(t)
	look := board.Look(s.shop().Epoch(), 0)
	defer look.Close()
	listed := 0
	for i := range 200 {
		if i%10 == 0 {
			if w := s.do("PUT", "/v1/databases/shop/data/.json", credential, c.data(3)); w.Code != 200 {
				t.Fatalf("PUT = %d %s", w.Code, w.Body)
			}
		}
		s.advance(time.Second) // not too many at a time
		document := `{"rules":` + c.rules(3) + `}`
		s.deploy(document)
		request, claims := c.request()
		allowed := s.real(request, claims)
		entries, skipped := look.Next()
		if len(entries) != choose(allowed, 0, 1) || skipped != 0 {
			t.Fatalf("rules %s\nrequest %+v\nis allowed %v, and listed as %+v", document, request, allowed, entries)
		}
		if allowed {
			continue
		}
		listed++
		e := entries[0]
		got := s.simulate(asked(e))
		// A simulation lists also rules that are just true, and has another push key.
		if got.Allowed || !sameRule(got.By, e.By) || len(got.Trace) < len(e.Trace) {
			t.Fatalf("rules %s\nrequest %+v\nis listed as %+v\nand simulated as %+v", document, request, e, got)
		}
	}
	if listed < 30 {
		t.Errorf("only %d of 200 requests were denied", listed)
	}
}

// sameRule reports whether both are the same rule, or none.
func sameRule(a, b *rules.Place) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Line == b.Line && a.Column == b.Column
}

// TestWhatIsNoDenial: what needs no answer from the rules is not listed, nor what an answer leaves
// out.
func TestWhatIsNoDenial(t *testing.T) {
	t.Parallel()
	s, board := newDenials(t)
	look := board.Look(s.shop().Epoch(), 0)
	defer look.Close()
	s.deploy(`{"rules":{"n":{".write":true}}}`)
	ask := func(method, target, body string, headers ...string) int {
		r := httptest.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.front.ServeHTTP(w, r)
		return w.Code
	}
	for _, test := range []struct {
		method, target, body string
		headers              []string
		want                 int
		listed               string
	}{
		{"GET", "/n.json?ns=shop&auth=" + shopSecret, "", nil, 200, ""},
		{"GET", "/n.json?ns=shop&auth=wrong", "", nil, 401, ""},
		{"PUT", "/n.json?ns=shop", `{".sv":{"increment":1}}`, nil, 200, ""},     // the sum is not told
		{"PUT", "/n.json?ns=shop", `1`, []string{"if-match", "other"}, 412, ""}, // nor whether the ETag matches
		{"GET", "/n.json?ns=shop", "", nil, 403, "read /n"},                     //
		{"GET", "/n.json?ns=shop", "", []string{"Accept", "text/event-stream"}, 403, "read /n"},
		{"PUT", "/m.json?ns=shop", `"` + strings.Repeat("x", 400_000) + `"`, nil, 403, "write /m"}, // its body is not read
	} {
		if got := ask(test.method, test.target, test.body, test.headers...); got != test.want {
			t.Errorf("%s %s = %d, want %d", test.method, test.target, got, test.want)
		}
		var list []string
		entries, _ := look.Next()
		for _, e := range entries {
			list = append(list, e.Verb+" "+e.Path)
		}
		if got := strings.Join(list, ", "); got != test.listed {
			t.Errorf("%s %s is listed as %q, want %q", test.method, test.target, got, test.listed)
		}
	}
}

// A pipe is an answer that is read while it is written.
type pipe struct {
	*httptest.ResponseRecorder
	*io.PipeWriter
}

func (p pipe) Write(text []byte) (int, error) { return p.PipeWriter.Write(text) }

// TestDenialsRoute: the stream has the denials of its database and no other's, while it is
// open, and no credential.
func TestDenialsRoute(t *testing.T) {
	t.Parallel()
	s, board := newDenials(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/databases/shop/denials", nil)
	r.Header.Set("Authorization", "Bearer "+signInShop(s))
	out, in := io.Pipe()
	answer := pipe{httptest.NewRecorder(), in}
	var serving sync.WaitGroup
	serving.Go(func() { s.handler.ServeHTTP(answer, r) })
	lines := bufio.NewScanner(out)
	next := func() (text []string) {
		for lines.Scan() && lines.Text() != "" {
			text = append(text, lines.Text())
		}
		return text
	}
	if got := strings.Join(next(), "|"); got != "id: 0|event: keep-alive|data: null" || answer.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("the stream begins with %s, %v", got, answer.Header())
	}
	token := s.token(`{"uid":"ann"}`)
	for target, want := range map[string]int{"ns=bank": 403, "ns=shop&auth=" + token: 403} {
		w := httptest.NewRecorder()
		s.front.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/a.json?"+target, nil))
		if w.Code != want {
			t.Fatalf("GET /a of %s = %d %s", target, w.Code, w.Body)
		}
	}
	got := next()
	if strings.Join(got[:2], "|") != "id: 1|event: denial" {
		t.Errorf("a denial is told as %q", got)
	}
	if data := got[2]; !strings.Contains(data, `"verb":"read","path":"/a","auth":"{`) || !strings.Contains(data, `\"uid\":\"ann\"`) || strings.Contains(data, token) {
		t.Errorf("the denial is told as %s", data)
	}
	leave()
	serving.Wait()
	if board.Watched() {
		t.Error("somebody looks after the stream has ended")
	}
}

// token makes one of the shop.
func (s *stand) token(body string) string {
	s.t.Helper()
	var made struct{ Token string }
	s.ask("POST", "/v1/databases/shop/tokens", body, &made)
	return made.Token
}
