package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/session"
)

const (
	shopSecret = "the-secret-of-the-shop"
	bankSecret = "the-secret-of-the-bank"
)

// newShops returns a stand with two databases that have secrets, which can be replaced.
func newShops(t *testing.T, change func(*admin.Options)) *stand {
	t.Helper()
	s := newStand(t, func(o *admin.Options) {
		o.Console = http.NotFoundHandler()
		o.SetSecrets = func(ctx context.Context, d *engine.Database, _ string, secrets []string) error {
			return d.SetSecrets(ctx, secrets...)
		}
		if change != nil {
			change(o)
		}
	})
	for name, secret := range map[string]string{"shop": shopSecret, "bank": bankSecret} {
		if err := s.database(name).SetSecrets(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// do makes a request with a credential or a session.
func (s *stand) do(method, path, bearer, body string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// signIn returns the session that a credential is exchanged for.
func (s *stand) signIn(body string) admin.SignedIn {
	s.t.Helper()
	w := s.do("POST", "/v1/sessions", "", body)
	var answer admin.SignedIn
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusCreated {
		s.t.Fatalf("POST /v1/sessions %s = %d %s", body, w.Code, w.Body)
	}
	return answer
}

func signInShop(s *stand) string {
	return s.signIn(`{"credential":"` + shopSecret + `","database":"shop"}`).Session
}

func signInOperator(s *stand) string { return s.signIn(`{"credential":"` + credential + `"}`).Session }

// request returns a request of a route for the database shop.
func request(pattern string) (method, path string) {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = "GET", pattern
	}
	path = strings.NewReplacer("{name}", "shop", "{id}", "none", "{path...}", "a.json").Replace(path)
	switch {
	case path == "/":
		path = "/none" // the root itself leads to the console
	case strings.HasSuffix(path, "/changes"):
		path += "?under=." // which is refused: the stream would not end
	case strings.HasSuffix(path, "/denials"):
		path += "?since=x" // likewise
	}
	return method, path
}

// Every route is asked by everybody. Those who are let in may be answered anything but
// 401 and 403.
func TestScopes(t *testing.T) {
	s := newShops(t, nil)
	ended := signInShop(s)
	if w := s.do("DELETE", "/v1/sessions/current", ended, ""); w.Code != 200 {
		t.Fatalf("signing out is answered %d %s", w.Code, w.Body)
	}
	for _, r := range s.handler.Routes() {
		if r.Pattern == "GET /debug/pprof/profile" || r.Pattern == "GET /debug/pprof/trace" || r.Pattern == "GET /v1/operations" {
			continue // these take a second; TestScopesOfSlowRoutes has them
		}
		method, path := request(r.Pattern)
		signIn := func(body string) string { return s.signIn(body).Session }
		for _, caller := range []struct {
			name, bearer string
			want         int // 0 for let in
		}{
			{"nobody", "", 401},
			{"a wrong credential", credential + "x", 401},
			{"a secret", shopSecret, 401},
			{"an ended session", ended, 401},
			{"the credential", credential, 0},
			{"the operator", signIn(`{"credential":"` + credential + `"}`), choose(r.ByCredential, 403, 0)},
			{"the shop", signIn(`{"credential":"` + shopSecret + `","database":"shop"}`), choose(r.ByDatabase, 0, 403)},
			{"the bank", signIn(`{"credential":"` + bankSecret + `","database":"bank"}`), choose(r.ByDatabase && !strings.Contains(r.Pattern, "{name}"), 0, 403)},
		} {
			w := s.do(method, path, caller.bearer, "")
			denied := w.Code == 401 || w.Code == 403
			if caller.want == 0 && denied || caller.want != 0 && w.Code != caller.want {
				t.Errorf("%s %s by %s = %d, want %s", method, path, caller.name, w.Code, choose(caller.want == 0, "to be let in", fmt.Sprint(caller.want)))
			}
			if got := w.Header().Get("Cache-Control"); got != "no-store" && got != "no-cache" {
				t.Errorf("%s %s may be kept: %q", method, path, got)
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s has the header %s", method, path, name)
				}
			}
		}
	}
}

func choose[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

func TestScopesOfSlowRoutes(t *testing.T) {
	s := newShops(t, nil)
	shop := signInShop(s)
	for _, path := range []string{"/debug/pprof/profile", "/debug/pprof/trace", "/v1/operations"} {
		for bearer, want := range map[string]int{"": 401, shop: 403} {
			if w := s.do("GET", path, bearer, ""); w.Code != want {
				t.Errorf("GET %s = %d, want %d", path, w.Code, want)
			}
		}
	}
}

func TestEveryRouteChecksTheHost(t *testing.T) {
	s := newShops(t, nil)
	for _, path := range []string{"/", "/console/", "/console/assets/x/y.js", "/v1/sessions", "/v1/databases/shop/data/a.json"} {
		r := httptest.NewRequest("GET", "http://evil.example"+path, nil)
		r.Header.Set("Authorization", "Bearer "+credential)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != http.StatusMisdirectedRequest {
			t.Errorf("GET %s for another host = %d, want 421", path, w.Code)
		}
	}
	if w := s.do("GET", "/", "", ""); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/" {
		t.Errorf("GET / = %d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestSigningIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShops(t, func(o *admin.Options) { o.Dev, o.Label.Text, o.Label.Color = true, "PRODUCTION", "red" })
		for _, test := range []struct {
			body string
			want int
			took time.Duration
		}{
			{`{"credential":"` + credential + `"}`, 201, 0},
			{`{"credential":"` + credential + `","database":"none"}`, 201, 0},
			{`{"credential":"` + shopSecret + `","database":"shop"}`, 201, 0},
			{`{"credential":"` + shopSecret + `","database":"bank"}`, 401, 250 * time.Millisecond},
			{`{"credential":"` + shopSecret + `","database":"none"}`, 401, 250 * time.Millisecond},
			{`{"credential":"` + shopSecret + `","database":"no/name"}`, 401, 250 * time.Millisecond},
			{`{"credential":"` + shopSecret + `"}`, 401, 250 * time.Millisecond},
			{`{"credential":"wrong"}`, 401, 250 * time.Millisecond},
			{`{"code":"wrong"}`, 401, 250 * time.Millisecond},
			{`{"credential":"a","code":"b"}`, 400, 0},
			{`{}`, 400, 0},
			{`{"credential":3}`, 400, 0},
			{`["x"]`, 400, 0},
			{``, 400, 0},
			{`{"credential":"` + strings.Repeat("x", 70_000) + `"}`, 413, 0},
		} {
			began := time.Now()
			w := s.do("POST", "/v1/sessions", "", test.body)
			if took := time.Since(began); w.Code != test.want || took != test.took {
				t.Errorf("POST /v1/sessions %.60s = %d after %v, want %d after %v", test.body, w.Code, took, test.want, test.took)
			}
		}
		got := s.signIn(`{"credential":"` + shopSecret + `","database":"shop"}`)
		if got.Scope != session.Database || got.Database != "shop" || !got.Dev || got.Label == nil || got.Label.Text != "PRODUCTION" ||
			got.Expires.Sub(s.now()) > session.Life {
			t.Errorf("who signs in is told %+v", got)
		}
	})
}

func TestGuessersLockNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShops(t, nil)
		statuses := make(chan int, 20)
		for range 12 {
			go func() { statuses <- s.do("POST", "/v1/sessions", "", `{"credential":"wrong"}`).Code }()
		}
		synctest.Wait()
		began := time.Now()
		s.signIn(`{"credential":"` + credential + `"}`)
		if took := time.Since(began); took != 0 {
			t.Errorf("the right credential is answered after %v", took)
		}
		counts := map[int]int{}
		for range 12 {
			counts[<-statuses]++
		}
		if counts[401] != 8 || counts[429] != 4 {
			t.Errorf("12 who guess at once are answered %v, want 8 times 401 and 4 times 429", counts)
		}
	})
}

func TestCodesSignInOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShops(t, nil)
		draw := func() string {
			w := s.do("POST", "/v1/codes", credential, "")
			var code admin.Code
			if err := json.Unmarshal(w.Body.Bytes(), &code); err != nil || w.Code != 201 {
				t.Fatalf("POST /v1/codes = %d %s", w.Code, w.Body)
			}
			text, ok := strings.CutPrefix(code.URL, "http://localhost/console/#code=")
			if !ok || len(text) < 20 {
				t.Fatalf("the link is %s", code.URL)
			}
			return text
		}
		code := draw()
		if got := s.signIn(`{"code":"` + code + `"}`); got.Scope != session.Operator {
			t.Errorf("a code signs in %+v", got)
		}
		if w := s.do("POST", "/v1/sessions", "", `{"code":"`+code+`"}`); w.Code != 401 {
			t.Errorf("a code signs in twice: %d", w.Code)
		}
		late := draw()
		s.advance(session.CodeLife)
		if w := s.do("POST", "/v1/sessions", "", `{"code":"`+late+`"}`); w.Code != 401 {
			t.Errorf("a code signs in late: %d", w.Code)
		}
	})
}

func TestSessionsEndWithWhatTheyRestOn(t *testing.T) {
	s := newShops(t, nil)
	shop, operator := signInShop(s), signInOperator(s)
	status := func(bearer string) int { return s.do("GET", "/v1/status", bearer, "").Code }
	if status(shop) != 200 || status(operator) != 200 {
		t.Fatalf("sessions are answered %d and %d", status(shop), status(operator))
	}
	if w := s.do("POST", "/v1/databases/shop/secrets", operator, `{"value":"another-secret-of-the-shop"}`); w.Code != 201 {
		t.Fatalf("adding a secret is answered %d %s", w.Code, w.Body)
	}
	if status(shop) != 200 {
		t.Error("a session ends when a secret is added")
	}
	if w := s.do("DELETE", "/v1/databases/shop/secrets/"+admin.SecretID(shopSecret), operator, ""); w.Code != 200 {
		t.Fatalf("removing a secret is answered %d %s", w.Code, w.Body)
	}
	if status(shop) != 401 || status(operator) != 200 {
		t.Errorf("after its secret was removed a session is answered %d, the operator's %d", status(shop), status(operator))
	}
	s.advance(session.Life)
	if status(operator) != 401 {
		t.Error("a session outlasts its time")
	}
}

// A stream is the reader of an answer that goes on.
func (s *stand) stream(url, bearer string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func TestStreamsEndWithTheirSession(t *testing.T) {
	s := newShops(t, nil)
	l, err := admin.Listen(admin.ListenerOptions{Addr: "127.0.0.1:0", Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.Serve(s.handler, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(bearer string) int{
		"signing out": func(bearer string) int { return s.do("DELETE", "/v1/sessions/current", bearer, "").Code },
		"removing the secret": func(string) int {
			return s.do("DELETE", "/v1/databases/shop/secrets/"+admin.SecretID(shopSecret)+"?force=true", credential, "").Code
		},
	} {
		database, err := s.catalog.Database("shop")
		if err == nil {
			err = database.SetSecrets(t.Context(), shopSecret)
		}
		if err != nil {
			t.Fatal(err)
		}
		bearer := signInShop(s)
		answer := s.stream(l.URL()+"/v1/databases/shop/data/a.json", bearer)
		first := make([]byte, len("event: put"))
		if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "event: put" {
			t.Fatalf("a stream begins with %q, %v", first, err)
		}
		for late := time.Now().Add(patience); l.Streams() != 1; runtime.Gosched() { // the one before may not be forgotten yet
			if time.Now().After(late) {
				t.Fatalf("%d streams are known to the listener, want 1", l.Streams())
			}
		}
		if code := end(bearer); code != 200 {
			t.Fatalf("%s is answered %d", name, code)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Logf("after %s the stream ends with %v", name, err)
		}
	}
}
