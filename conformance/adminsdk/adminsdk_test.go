package adminsdk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	p := start(t)
	pem, err := os.ReadFile(filepath.Join(p.data, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &oauth2.Transport{
		Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: secret}),
		Base:   &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	app, err := firebase.NewApp(t.Context(), &firebase.Config{DatabaseURL: "https://" + p.addr + "/"},
		option.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	client, err := app.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testClient(t, client)
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
