package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

// A provider is an identity provider on loopback.
type provider struct {
	*httptest.Server
	discoveries, fetches atomic.Int32

	mu     sync.Mutex
	answer http.HandlerFunc // of /keys
	config string           // the discovery document; "" for the right one
}

func newProvider(t *testing.T) *provider {
	p := &provider{}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.discoveries.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		config := p.config
		if config == "" {
			config = object("issuer", quote(p.URL), "jwks_uri", quote(p.URL+"/keys"))
		}
		fmt.Fprint(w, config)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	})
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { t.Error("a request to another address") })
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// serve sets what /keys answers with.
func (p *provider) serve(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func keysAnswer(keys ...string) http.HandlerFunc { return textAnswer(webKeys(keys...), "") }

func textAnswer(text, cacheControl string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if cacheControl != "" {
			w.Header().Set("Cache-Control", cacheControl)
		}
		fmt.Fprint(w, text)
	}
}

// statusAnswer is a good key set in an answer that is not.
func statusAnswer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, webKeys(webKey("b", strangeKey)))
	}
}

// A bench is a verifier that trusts a provider, with a clock to move.
type bench struct {
	*provider
	t     *testing.T
	v     *auth.Verifier
	clock atomic.Int64 // nanoseconds
}

func newBench(t *testing.T) *bench {
	b := &bench{provider: newProvider(t), t: t}
	b.clock.Store(now.UnixNano())
	b.v = newVerifier(t, auth.Options{
		Now:     func() time.Time { return time.Unix(0, b.clock.Load()) },
		Issuers: []auth.Issuer{{URL: b.URL, Audiences: []string{project}}},
	})
	return b
}

func (b *bench) wait(d time.Duration) { b.clock.Add(int64(d)) }

// token is one of the provider that is good for weeks.
func (b *bench) token(kid string, key any) string {
	header := fmt.Sprintf(`{"alg":"EdDSA","kid":%q}`, kid)
	return forge(header, issuedClaims("iss", quote(b.URL), "exp", seconds(1000*time.Hour)), key)
}

// expect verifies a token and looks at the outcome and at the number of fetches
// that were made since the beginning.
func (b *bench) expect(when, token, want string, fetches int32) {
	b.t.Helper()
	got := "accepted"
	if _, err := b.v.Verify(context.Background(), token, database); err != nil {
		got = fault.KindOf(err).String()
	}
	if got != want || b.fetches.Load() != fetches {
		b.t.Errorf("%s: the token is %s after %d fetches, want %s after %d", when, got, b.fetches.Load(), want, fetches)
	}
}

const (
	accepted    = "accepted"
	refused     = "unauthenticated"
	unavailable = "unavailable"
)

func TestRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, next := b.token("old", edKey), b.token("next", strangeKey)
	b.serve(keysAnswer(webKey("old", edKey)))
	b.expect("at first", old, accepted, 1)
	b.expect("again", old, accepted, 1)
	b.wait(time.Minute)
	b.serve(keysAnswer(webKey("old", edKey), webKey("next", strangeKey)))
	b.expect("the old key needs no fetch", old, accepted, 1)
	b.expect("the next key is fetched at once", next, accepted, 2)
	b.expect("both are good", old, accepted, 2)
	b.serve(keysAnswer(webKey("next", strangeKey)))
	b.expect("the old key is good until the set is stale", old, accepted, 2)
	b.wait(time.Hour)
	b.expect("then it is not", old, refused, 3)
	b.expect("and the next one is", next, accepted, 3)
	b.serve(keysAnswer())
	b.wait(time.Hour)
	b.expect("an empty set takes all keys away", next, refused, 4)
	if b.discoveries.Load() != 4 {
		t.Errorf("%d discovery documents were fetched, want one for each key set", b.discoveries.Load())
	}
}

func TestUnknownKeysAreFetchedOnceAMinute(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve(keysAnswer(webKey("a", edKey)))
	b.expect("at first", b.token("a", edKey), accepted, 1)
	for i := range 50 {
		b.expect("within the minute", b.token(fmt.Sprint("x", i), strangeKey), refused, 1)
	}
	b.wait(time.Minute - 1)
	b.expect("at its end", b.token("y", strangeKey), refused, 1)
	b.wait(1)
	for i := range 50 {
		b.expect("in the next minute", b.token(fmt.Sprint("z", i), strangeKey), refused, 2)
	}
	b.expect("a good one all the while", b.token("a", edKey), accepted, 2)
	b.wait(time.Minute)
	b.expect("a wrong signature needs no fetch", b.token("a", strangeKey), refused, 2)
	wrong := strings.Replace(issuedClaims("iss", quote(b.URL)), project, "elsewhere", 1)
	b.expect("nor does another audience", forge(`{"alg":"EdDSA","kid":"w"}`, wrong, strangeKey), refused, 2)
	b.expect("nor another issuer", forge(`{"alg":"EdDSA","kid":"w"}`, issuedClaims(), strangeKey), refused, 2)
	b.expect("nor HS256", forge(`{"alg":"HS256","kid":"w"}`, issuedClaims("iss", quote(b.URL)), "x"), refused, 2)
}

func TestOldKeysStayWhenAFetchFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := b.token("a", edKey)
	b.serve(keysAnswer(webKey("a", edKey)))
	b.expect("at first", good, accepted, 1)
	fetches := int32(1)
	for name, answer := range map[string]http.HandlerFunc{
		"status 500":      statusAnswer(http.StatusInternalServerError),
		"status 404":      statusAnswer(http.StatusNotFound),
		"no body":         textAnswer("", ""),
		"a redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"no JSON":         textAnswer("<html>", ""),
		"no key set":      textAnswer(`{"error":"later"}`, ""),
		"null":            textAnswer(`null`, ""),
		"too many keys":   keysAnswer(strings.Split(strings.Repeat("{} ", 100)+"{}", " ")...),
		"a huge body":     textAnswer(webKeys(webKey("b", strangeKey))+strings.Repeat(" ", 256<<10), ""),
		"an endless body": endless,
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"keys":[`)
		},
	} {
		b.serve(answer)
		b.wait(time.Hour)
		fetches++
		b.expect(name+", stale", good, accepted, fetches)
		b.expect(name+", at once again", good, accepted, fetches)
		b.expect(name+", unknown key", b.token("b", strangeKey), refused, fetches)
		b.wait(time.Minute)
		fetches++
		b.expect(name+", a minute later", good, accepted, fetches)
	}
	b.serve(keysAnswer(webKey("b", strangeKey)))
	b.wait(time.Minute)
	b.expect("when it works again", b.token("b", strangeKey), accepted, fetches+1)
}

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
			return
		}
	}
}

func TestNoKeysYet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := b.token("a", edKey)
	b.serve(statusAnswer(http.StatusBadGateway))
	b.expect("while the issuer is down", good, unavailable, 1)
	b.expect("again", good, unavailable, 1)
	b.expect("secrets work all the while", forge(hs, ann, secret), accepted, 1)
	b.wait(10*time.Second - 1)
	b.expect("shortly before ten seconds", good, unavailable, 1)
	b.serve(keysAnswer(webKey("a", edKey)))
	b.wait(1)
	b.expect("after ten seconds", good, accepted, 2)
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	for cacheControl, want := range map[string]time.Duration{
		"":                               time.Hour,
		"no-cache":                       time.Hour,
		"public, max-age=600, no-x":      10 * time.Minute,
		"Max-Age=600":                    10 * time.Minute,
		"max-age=0":                      time.Minute,
		"max-age=1":                      time.Minute,
		"max-age=2147483647":             24 * time.Hour,
		"max-age=99999999999999999999":   time.Hour,
		"max-age=-5":                     time.Hour,
		"max-age=600s":                   time.Hour,
		"s-maxage=7, max-age=120":        2 * time.Minute,
		"must-revalidate,  max-age=7200": 2 * time.Hour,
	} {
		b := newBench(t)
		good := b.token("a", edKey)
		b.serve(textAnswer(webKeys(webKey("a", edKey)), cacheControl))
		b.expect(cacheControl+": at first", good, accepted, 1)
		b.wait(want - 1)
		b.expect(cacheControl+": before it is stale", good, accepted, 1)
		b.wait(1)
		b.expect(cacheControl+": when it is stale", good, accepted, 2)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"another issuer":       `{"issuer":"https://evil.example.com","jwks_uri":"%s/keys"}`,
		"no issuer":            `{"jwks_uri":"%s/keys"}`,
		"no jwks_uri":          `{"issuer":"%[1]s"}`,
		"a file":               `{"issuer":"%[1]s","jwks_uri":"file:///etc/passwd"}`,
		"plain http elsewhere": `{"issuer":"%[1]s","jwks_uri":"http://192.0.2.1/keys"}`,
		"no JSON":              `<html>`,
		"huge":                 `{"issuer":"%[1]s","jwks_uri":"%[1]s/keys"}` + strings.Repeat(" ", 256<<10),
	} {
		b := newBench(t)
		b.serve(keysAnswer(webKey("a", edKey)))
		b.config = config
		if strings.Contains(config, "%") {
			b.config = strings.ReplaceAll(strings.ReplaceAll(config, "%[1]s", b.URL), "%s", b.URL)
		}
		b.expect(name, b.token("a", edKey), unavailable, 0)
		b.config = ""
		b.wait(10 * time.Second)
		b.expect(name+", mended", b.token("a", edKey), accepted, 1)
	}
}

// A roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transport answers with the texts for these URLs, and has no route elsewhere.
func transport(texts map[string]string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		text, ok := texts[r.URL.String()]
		if !ok {
			return nil, errors.New("no route to host")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
}

// TestOnlyConfiguredAddresses sends every bad token, and those whose headers
// point elsewhere, and looks where the verifier goes.
func TestOnlyConfiguredAddresses(t *testing.T) {
	t.Parallel()
	const keys = "https://keys.example.org/jwks.json"
	texts := transport(map[string]string{keys: webKeys(webKey("ed", edKey))})
	visited := map[string]int{}
	clock := now
	v := newVerifier(t, auth.Options{
		Now:     func() time.Time { return clock },
		Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, JWKS: keys}},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			visited[r.Method+" "+r.URL.String()]++
			if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" || r.Body != nil {
				t.Errorf("the request carries more than it needs: %v", r.Header)
			}
			return texts(r)
		}),
	})
	for _, c := range tokenCases() {
		verify(v, c.token())
		clock = clock.Add(time.Minute)
	}
	for url := range visited {
		if url != "GET "+keys {
			t.Errorf("the verifier went to %s", url)
		}
	}
	if len(visited) == 0 {
		t.Error("the verifier went nowhere")
	}
}

// TestDiscoveredAddresses lets discovery documents name key sets that would all
// be answered.
func TestDiscoveredAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		issuer, keys string
		want         bool
	}{
		{issuer, "https://keys.example.org/jwks.json", true},
		{issuer + "/", "https://keys.example.org/jwks.json", true},
		{"http://localhost:8080", "http://localhost:8080/keys", true},
		{"http://localhost:8080", "http://127.0.0.1/keys", true},
		{"http://localhost:8080", "https://keys.example.org/jwks.json", true},
		{issuer, "http://localhost/keys", false},
		{issuer, "http://keys.example.org/jwks.json", false},
		{"http://localhost:8080", "http://keys.example.org/jwks.json", false},
		{"http://localhost:8080", "http://10.0.0.1/keys", false},
		{issuer, "https://user:hunter2@keys.example.org/", false},
		{issuer, "ftp://localhost/keys", false},
		{issuer, "/keys", false},
		{issuer, "", false},
	} {
		v := newVerifier(t, auth.Options{
			Issuers: []auth.Issuer{{URL: test.issuer, Audiences: []string{project}}},
			Transport: transport(map[string]string{
				strings.TrimSuffix(test.issuer, "/") + "/.well-known/openid-configuration": object("issuer", quote(test.issuer), "jwks_uri", quote(test.keys)),
				test.keys: webKeys(webKey("ed", edKey)),
			}),
		})
		got := verify(v, forge(ed, issuedClaims("iss", quote(test.issuer)), edKey))
		if !strings.HasPrefix(got, unavailable) != test.want {
			t.Errorf("issuer %s, keys at %s: %s, want accepted: %t", test.issuer, test.keys, got, test.want)
		}
	}
}

// TestSlowIssuer runs in a bubble of its own time: the provider never answers.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = "https://keys.example.org/jwks.json"
		answers := transport(map[string]string{keys: webKeys(webKey("ed", edKey))})
		slow := false
		fetches := 0
		v := newVerifier(t, auth.Options{
			Now:     time.Now,
			Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, JWKS: keys}},
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				fetches++
				if slow {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return answers(r)
			}),
		})
		good := forge(ed, issuedClaims("exp", fmt.Sprint(time.Now().Add(100*time.Hour).Unix())), edKey)
		check := func(when, want string, took time.Duration) {
			t.Helper()
			start := time.Now()
			got := verify(v, good)
			if strings.HasPrefix(got, "[]") {
				got = accepted
			}
			if !strings.HasPrefix(got, want) || time.Since(start) != took {
				t.Errorf("%s: %s after %v, want %s after %v", when, got, time.Since(start), want, took)
			}
		}
		slow = true
		check("no keys yet", unavailable, 5*time.Second)
		check("no keys yet, again", unavailable, 0)
		slow = false
		<-time.After(5 * time.Second)
		check("it answers", accepted, 0)
		slow = true
		<-time.After(time.Hour)
		// One request waits, those that come meanwhile use the keys that are there.
		done := make(chan struct{})
		go func() {
			defer close(done)
			check("stale", accepted, 5*time.Second)
		}()
		synctest.Wait()
		check("stale, while another waits", accepted, 0)
		<-done
		check("stale, after the fetch failed", accepted, 0)
		if fetches != 3 {
			t.Errorf("%d fetches, want 3", fetches)
		}
	})
}

// TestClientsThatLeave: who waits for the fetch of another may go, and the fetch
// does not end with the request that began it.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = "https://keys.example.org/jwks.json"
		answers := transport(map[string]string{keys: webKeys(webKey("ed", edKey))})
		release := make(chan struct{})
		v := newVerifier(t, auth.Options{
			Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, JWKS: keys}},
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				select {
				case <-release:
					return answers(r)
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}),
		})
		good := forge(ed, issuedClaims(), edKey)
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan error, 3)
		for _, ctx := range []context.Context{ctx, ctx, t.Context()} {
			go func() {
				_, err := v.Verify(ctx, good, database)
				results <- err
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if err := <-results; !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Internal {
			t.Errorf("the client that left gets %v, want the error of its context", err)
		}
		if len(results) > 0 {
			t.Fatalf("the fetch ended with the request that began it: %v", <-results)
		}
		close(release)
		for range 2 {
			if err := <-results; err != nil {
				t.Errorf("a client that waited gets %v", err)
			}
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve(keysAnswer(webKey("a", edKey)))
	good, unknown := b.token("a", edKey), b.token("b", edKey)
	for round := range int32(3) {
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				token, want := good, ""
				if i%4 == 0 {
					token, want = unknown, unparsed
				}
				if got := outcome(b.v.Verify(context.Background(), token, database)); want != "" && got != want || want == "" && got == unparsed {
					t.Errorf("round %d: %s", round, got)
				}
			})
		}
		group.Wait()
		if b.fetches.Load() != round+1 {
			t.Errorf("%d fetches in %d rounds, want one in each", b.fetches.Load(), round+1)
		}
		b.wait(time.Minute)
	}
}

// A queue has room for so many.
type queue struct{ room, left atomic.Int64 }

func (q *queue) Join() error {
	if q.room.Add(-1) < 0 {
		return fault.New(fault.Unavailable, "it is full")
	}
	return nil
}

func (q *queue) Leave() { q.left.Add(1) }

// TestQueueForKeys: those who wait for the fetch of another are counted by their queue, and refused if that is full.
func TestQueueForKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = "https://keys.example.org/jwks.json"
		answers := transport(map[string]string{keys: webKeys(webKey("ed", edKey))})
		release := make(chan struct{})
		v := newVerifier(t, auth.Options{
			Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{project}, JWKS: keys}},
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-release
				return answers(r)
			}),
		})
		q := &queue{}
		q.room.Store(2)
		ctx := auth.WithQueue(t.Context(), q)
		good := forge(ed, issuedClaims(), edKey)
		results := make(chan error, 4)
		for range 4 { // the first of them fetches
			go func() {
				_, err := v.Verify(ctx, good, database)
				results <- err
			}()
			synctest.Wait()
		}
		if err := <-results; fault.KindOf(err) != fault.Unavailable || err.Error() != "it is full" {
			t.Errorf("the one for whom there is no room gets %v", err)
		}
		if len(results) > 0 || q.left.Load() != 0 {
			t.Fatalf("%d have left the queue, and one got %v", q.left.Load(), <-results)
		}
		for reason, n := range v.Failures() {
			if n > 0 {
				t.Errorf("%d refusals count as %s", n, reason)
			}
		}
		close(release)
		for range 3 {
			if err := <-results; err != nil {
				t.Errorf("one that waited gets %v", err)
			}
		}
		if left := q.left.Load(); left != 2 {
			t.Errorf("%d have left the queue, want 2", left)
		}
		if _, err := v.Verify(auth.WithQueue(t.Context(), &queue{}), good, database); err != nil {
			t.Errorf("with keys nobody waits, but one gets %v", err)
		}
	})
}
