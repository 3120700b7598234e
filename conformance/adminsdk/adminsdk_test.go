package adminsdk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/db"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
)

const secret = "AdminSDKsecretAdminSDKsecretAdminSDKsecr"

// insideVariable says to a test process that it is in namespaces of its own, and
// where the files of TestSuite are.
const insideVariable = "LIVETREE_SUITE_INSIDE"

// TestEmulatorMode uses the SDK as it is used against the emulator: plain HTTP,
// the database in ns, the credential owner.
func TestEmulatorMode(t *testing.T) {
	p := start(t, "--dev", "--allow-http")
	// The SDK takes no IP address here.
	t.Setenv("FIREBASE_DATABASE_EMULATOR_HOST", strings.Replace(p.addr, "127.0.0.1", "localhost", 1)+"?ns=sdk")
	app, err := firebase.NewApp(t.Context(), &firebase.Config{DatabaseURL: "https://sdk.firebaseio.com"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := app.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testClient(t, client)
}

// TestHTTPS uses the SDK with the app secret over HTTPS.
func TestHTTPS(t *testing.T) {
	client, _ := connect(t)
	testClient(t, client)
}

// TestQueries uses the queries of the SDK over HTTPS.
func TestQueries(t *testing.T) {
	client, p := connect(t)
	ctx := t.Context()
	data := map[string]any{
		"people": map[string]any{
			"ann": map[string]any{"age": 30, "name": map[string]any{"first": "Ann"}},
			"ben": map[string]any{"age": 20, "name": map[string]any{"first": "Ben"}},
			"cat": map[string]any{"age": 30, "name": map[string]any{"first": "Cat"}},
			"dan": map[string]any{"name": map[string]any{"first": "Dan"}},
			"eve": map[string]any{"age": "unknown", "name": map[string]any{"first": "Eve"}},
		},
		"scores": map[string]any{"a": 7, "b": -1.5, "c": "text", "d": false, "e": map[string]any{"x": 1}, "f": 7},
		"list":   []any{"zero", "one", "two", "three"},
	}
	must(t, client.NewRef("").Set(ctx, data))
	people, scores, list := client.NewRef("people"), client.NewRef("scores"), client.NewRef("list")
	var none any
	err := people.OrderByChild("age").Get(ctx, &none)
	const noIndex = `Index not defined, add ".indexOn": "age", for path "/people", to the rules`
	if err == nil || !strings.Contains(err.Error(), noIndex) {
		t.Fatalf("a query without an index gives %v, want %s", err, noIndex)
	}
	p.putRules(t, `{"rules": {"people": {".indexOn": ["age", "name/first"]}, "scores": {".indexOn": ".value"}}}`)
	tests := []struct {
		name  string
		query *db.Query
		want  string // the keys in order
	}{
		{"by child", people.OrderByChild("age"), "dan ben ann cat eve"},
		{"by child, StartAt", people.OrderByChild("age").StartAt(30), "ann cat eve"},
		{"by child, EndAt", people.OrderByChild("age").EndAt(20), "dan ben"},
		{"by child, a range", people.OrderByChild("age").StartAt(20).EndAt(29.5), "ben"},
		{"by child, EqualTo", people.OrderByChild("age").EqualTo(30), "ann cat"},
		{"by child, EqualTo a string", people.OrderByChild("age").EqualTo("unknown"), "eve"},
		{"by child, LimitToFirst", people.OrderByChild("age").LimitToFirst(3), "dan ben ann"},
		{"by child, LimitToLast", people.OrderByChild("age").LimitToLast(2), "cat eve"},
		{"by child, a range and a limit", people.OrderByChild("age").StartAt(20).EndAt(30).LimitToLast(2), "ann cat"},
		{"by child, nothing matches", people.OrderByChild("age").EqualTo(99), ""},
		{"by a deeper child", people.OrderByChild("name/first").StartAt("B").EndAt("D\uf8ff"), "ben cat dan"},
		{"by key", people.OrderByKey(), "ann ben cat dan eve"},
		{"by key, a range", people.OrderByKey().StartAt("b").EndAt("d"), "ben cat"},
		{"by key, EqualTo", people.OrderByKey().EqualTo("cat"), "cat"},
		{"by key, LimitToFirst", people.OrderByKey().LimitToFirst(1), "ann"},
		{"by key, LimitToLast", people.OrderByKey().LimitToLast(2), "dan eve"},
		{"by value", scores.OrderByValue(), "d b a f c e"},
		{"by value, StartAt", scores.OrderByValue().StartAt(0), "a f c e"},
		{"by value, EndAt", scores.OrderByValue().EndAt(7), "d b a f"},
		{"by value, EqualTo", scores.OrderByValue().EqualTo(7), "a f"},
		{"by value, EqualTo false", scores.OrderByValue().EqualTo(false), "d"},
		{"by value, LimitToFirst", scores.OrderByValue().LimitToFirst(2), "d b"},
		{"by value, LimitToLast", scores.OrderByValue().LimitToLast(3), "f c e"},
		{"of a list", list.OrderByKey().StartAt("1").LimitToFirst(2), "1 2"},
		{"of a leaf", client.NewRef("scores/a").OrderByKey(), ""},
		{"of nothing", client.NewRef("nothing").OrderByKey().LimitToFirst(1), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nodes, err := test.query.GetOrdered(ctx)
			must(t, err)
			var keys []string
			for _, n := range nodes {
				keys = append(keys, n.Key())
			}
			if got := strings.Join(keys, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("data", func(t *testing.T) {
		var found map[string]struct{ Age int }
		must(t, people.OrderByChild("age").EqualTo(20).Get(ctx, &found))
		if len(found) != 1 || found["ben"].Age != 20 {
			t.Errorf("Get gives %+v, want ben", found)
		}
	})
}

// putRules replaces the rules, for which the SDK has no method.
func (p process) putRules(t *testing.T, rules string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+p.addr+"/.settings/rules.json?auth="+secret, strings.NewReader(rules))
	must(t, err)
	resp, err := (&http.Client{Transport: p.transport(t)}).Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != http.StatusOK || string(body) != `{"status":"ok"}` {
		t.Fatalf("the rules are answered %d %s", resp.StatusCode, body)
	}
}

// transport returns a transport that trusts the server.
func (p process) transport(t *testing.T) *http.Transport {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(p.data, "tls", "ca.pem"))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// connect starts a server and returns a client of it that uses HTTPS and the
// app secret.
func connect(t *testing.T) (*db.Client, process) {
	t.Helper()
	p := start(t)
	transport := &oauth2.Transport{
		Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: secret}),
		Base:   p.transport(t),
	}
	app, err := firebase.NewApp(t.Context(), &firebase.Config{DatabaseURL: "https://" + p.addr + "/"},
		option.WithHTTPClient(&http.Client{Transport: transport}))
	must(t, err)
	client, err := app.Database(t.Context())
	must(t, err)
	return client, p
}

type user struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

func testClient(t *testing.T, client *db.Client) {
	ctx := t.Context()
	users := client.NewRef("users")
	t.Run("set and get", func(t *testing.T) {
		must(t, users.Child("ann").Set(ctx, user{"Ann", 30}))
		var got user
		must(t, users.Child("ann").Get(ctx, &got))
		if got != (user{"Ann", 30}) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("push", func(t *testing.T) {
		ref, err := client.NewRef("list").Push(ctx, map[string]int{"n": 1})
		must(t, err)
		var n int
		must(t, ref.Child("n").Get(ctx, &n))
		if len(ref.Key) != 20 || n != 1 {
			t.Errorf("pushed %q, read %d", ref.Key, n)
		}
	})
	t.Run("update", func(t *testing.T) {
		must(t, users.Child("ann").Update(ctx, map[string]any{"age": 31}))
		must(t, client.NewRef("").Update(ctx, map[string]any{"users/ben/name": "Ben", "users/ben/age": 20}))
		var all map[string]user
		must(t, users.Get(ctx, &all))
		if all["ann"] != (user{"Ann", 31}) || all["ben"] != (user{"Ben", 20}) {
			t.Errorf("after the updates: %+v", all)
		}
	})
	t.Run("shallow", func(t *testing.T) {
		var keys map[string]bool
		must(t, users.GetShallow(ctx, &keys))
		if len(keys) != 2 || !keys["ann"] || !keys["ben"] {
			t.Errorf("keys %v", keys)
		}
	})
	t.Run("conditional", func(t *testing.T) { testConditional(ctx, t, users.Child("ann")) })
	t.Run("transaction", func(t *testing.T) { testTransaction(ctx, t, client.NewRef("counter")) })
	t.Run("delete", func(t *testing.T) {
		must(t, users.Delete(ctx))
		var gone any
		must(t, users.Get(ctx, &gone))
		if gone != nil {
			t.Errorf("after the delete: %v", gone)
		}
	})
	t.Run("bad data", func(t *testing.T) {
		err := users.Set(ctx, map[string]int{"a.b": 1})
		if err == nil || !strings.Contains(err.Error(), "couldn't parse key beginning at 1:2") {
			t.Errorf("a bad key gives %v", err)
		}
	})
}

func testConditional(ctx context.Context, t *testing.T, ref *db.Ref) {
	var u user
	tag, err := ref.GetWithETag(ctx, &u)
	must(t, err)
	changed, _, err := ref.GetIfChanged(ctx, tag, &u)
	must(t, err)
	if changed {
		t.Error("GetIfChanged says changed, and nothing was")
	}
	ok, err := ref.SetIfUnchanged(ctx, tag, user{"Ann", 40})
	must(t, err)
	if !ok {
		t.Error("SetIfUnchanged with the right ETag did not set")
	}
	if ok, err = ref.SetIfUnchanged(ctx, tag, user{"Ann", 50}); ok || err != nil {
		t.Errorf("SetIfUnchanged with an old ETag = %v, %v", ok, err)
	}
	changed, _, err = ref.GetIfChanged(ctx, tag, &u)
	must(t, err)
	if !changed || u.Age != 40 {
		t.Errorf("GetIfChanged = %v, %+v", changed, u)
	}
}

// testTransaction increments a counter from many goroutines at once.
func testTransaction(ctx context.Context, t *testing.T, ref *db.Ref) {
	const clients = 4
	errs := make(chan error, clients)
	for range clients {
		go func() {
			errs <- ref.Transaction(ctx, func(node db.TransactionNode) (any, error) {
				var n int
				if err := node.Unmarshal(&n); err != nil {
					return nil, err
				}
				return n + 1, nil
			})
		}()
	}
	for range clients {
		must(t, <-errs)
	}
	var n int
	must(t, ref.Get(ctx, &n))
	if n != clients {
		t.Errorf("%d transactions made %d", clients, n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
