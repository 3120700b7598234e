package adminsdk

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/db"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

// createAccount has the command make a key file.
func (p process) createAccount(t *testing.T, name, database, url, file string) {
	t.Helper()
	command(t, binary, "service-account", "create", name, "--data", p.data, "--db", database, "--url", url, "--out", file)
}

// keyed starts a server and returns it with a new key file of the default
// database.
func keyed(t *testing.T) (p process, file string) {
	t.Helper()
	p = start(t)
	file = filepath.Join(t.TempDir(), "key.json")
	p.createAccount(t, "sdk", "default", "https://"+p.addr, file)
	return p, file
}

// withKey returns a client of the SDK that has nothing but a key file.
func withKey(t *testing.T, p process, file string, override *map[string]any) *db.Client {
	t.Helper()
	config := &firebase.Config{DatabaseURL: "https://" + p.addr}
	if override != nil {
		config.AuthOverride = override
	}
	app, err := firebase.NewApp(t.Context(), config, option.WithCredentialsFile(file))
	must(t, err)
	client, err := app.Database(t.Context())
	must(t, err)
	return client
}

// TestKeyFile runs in a process of its own: which authorities Go trusts is fixed
// when it first asks.
func TestKeyFile(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		p, file := keyed(t)
		inOwnProcess(t, p, file, "^TestWithKey$")
	})
	t.Run("override", func(t *testing.T) {
		p, file := keyed(t)
		p.putRules(t, `{"rules": {"$uid": {".read": true, ".write": "auth.uid === $uid"}}}`)
		inOwnProcess(t, p, file, "^TestWithKeyAsSomebody$")
	})
	t.Run("revoked", func(t *testing.T) {
		p, file := keyed(t)
		inOwnProcess(t, p, file, "^TestWithKeyRevoked$")
	})
}

const keyVariable = "LIVETREE_SDK_KEY" // data directory, address, key file

func inOwnProcess(t *testing.T, p process, file, pattern string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	t.Setenv("SSL_CERT_FILE", filepath.Join(p.data, "tls", "ca.pem"))
	t.Setenv(keyVariable, strings.Join([]string{p.data, p.addr, file, binary}, "\n"))
	out := command(t, self, "-test.v", "-test.run", pattern)
	if !strings.Contains(out, "--- PASS") || strings.Contains(out, "--- SKIP") {
		t.Errorf("nothing was tested: %s", out)
	}
}

// inside returns the server and the key file of a test in its own process.
func inside(t *testing.T) (process, string) {
	t.Helper()
	parts := strings.Split(os.Getenv(keyVariable), "\n")
	if len(parts) != 4 {
		t.Skip("a part of TestKeyFile")
	}
	binary = parts[3]
	return process{data: parts[0], addr: parts[1]}, parts[2]
}

func TestWithKey(t *testing.T) {
	p, file := inside(t)
	// Clients that begin in the same second send the same assertion.
	var clients []*db.Client
	for range 8 {
		clients = append(clients, withKey(t, p, file, nil))
	}
	for i, client := range clients {
		must(t, client.NewRef("clients/"+strconv.Itoa(i)).Set(t.Context(), i))
	}
	testClient(t, clients[0])
}

// TestWithKeyAsSomebody gives up what the key is good for.
func TestWithKeyAsSomebody(t *testing.T) {
	p, file := inside(t)
	ctx := t.Context()
	ann := withKey(t, p, file, &map[string]any{"uid": "ann"})
	must(t, ann.NewRef("ann").Set(ctx, 1))
	if err := ann.NewRef("ben").Set(ctx, 1); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("ann writes what is ben's: %v", err)
	}
	var none map[string]any
	guest := withKey(t, p, file, &none)
	var n int
	must(t, guest.NewRef("ann").Get(ctx, &n))
	if err := guest.NewRef("ann").Set(ctx, 2); err == nil || n != 1 {
		t.Errorf("a guest reads %d and writes: %v", n, err)
	}
}

// TestWithKeyRevoked has a client and a stream when the account is revoked.
func TestWithKeyRevoked(t *testing.T) {
	p, file := inside(t)
	ctx := t.Context()
	client := withKey(t, p, file, nil)
	must(t, client.NewRef("a").Set(ctx, 1))
	stream := openStream(ctx, t, p, file)
	if line := next(t, stream); line != "event: put" {
		t.Fatalf("the stream begins with %q", line)
	}
	command(t, binary, "service-account", "revoke", "sdk", "--data", p.data)
	if err := client.NewRef("a").Set(ctx, 2); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("after the revocation: %v, want 401", err)
	}
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends without auth_revoked: %v", err)
		}
		if strings.TrimSpace(line) == "event: auth_revoked" {
			return
		}
	}
}

func next(t *testing.T, stream *bufio.Reader) string {
	t.Helper()
	line, err := stream.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// openStream opens a stream with an access token that the SDK's own library has
// got for the key.
func openStream(ctx context.Context, t *testing.T, p process, file string) *bufio.Reader {
	t.Helper()
	token := accessToken(ctx, t, file)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.addr+"/.json", nil)
	must(t, err)
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("the stream is answered %d %s", answer.StatusCode, text)
	}
	return bufio.NewReader(answer.Body)
}

func accessToken(ctx context.Context, t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	config, err := google.JWTConfigFromJSON(text, "https://www.googleapis.com/auth/firebase.database")
	must(t, err)
	token, err := config.TokenSource(ctx).Token()
	must(t, err)
	if token.TokenType != "Bearer" || token.Expiry.IsZero() {
		t.Errorf("the token is %q until %v", token.TokenType, token.Expiry)
	}
	return token.AccessToken
}
