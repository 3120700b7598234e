package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
)

// operated is a server in its own process, for the commands of its operator. It
// must be ended.
func operated(t *testing.T, flags ...string) (p *process, data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	p = start(t, serving(data, append([]string{"--admin-addr", "127.0.0.1:0"}, flags...)...)...)
	return p, data
}

func (p *process) end() {
	p.t.Helper()
	if code := p.stop(syscall.SIGTERM); code != 0 {
		p.t.Errorf("the server ended with code %d: %s", code, p.stderr.String())
	}
}

// done runs a command that must succeed, and returns what it prints.
func done(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(args...)
	if code != 0 {
		t.Fatalf("livetree %q: exit %d, %q", args, code, errs)
	}
	return out
}

// refused runs a command that must fail with one line that has a text.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	code, out, errs := command(args...)
	if code == 0 || out != "" || !oneLine(errs) || !strings.Contains(errs, want) {
		t.Errorf("livetree %q: exit %d, %q, %q; want a failure and one line with %q", args, code, out, errs, want)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestDBCommands(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	in := func(args ...string) []string { return append(args, "--data", data) }
	if out := done(t, in("db", "create", "shop")...); !strings.Contains(out, filepath.Join(data, "secrets", "shop")) {
		t.Errorf("livetree db create: %q, want where the secret is", out)
	}
	refused(t, "exists already", in("db", "create", "shop")...)
	refused(t, "invalid database name", in("db", "create", "No")...)
	if out := done(t, in("db", "list")...); !strings.Contains(out, "default ") || !strings.Contains(out, "shop ") {
		t.Errorf("livetree db list: %q, want default and shop", out)
	}
	var list struct{ Databases []admin.Database }
	if err := json.Unmarshal([]byte(done(t, in("db", "list", "--json")...)), &list); err != nil || len(list.Databases) != 2 {
		t.Errorf("livetree db list --json: %+v, %v; want two databases", list, err)
	}
	if out := done(t, in("db", "stats", "shop")...); !strings.Contains(out, "closed to strangers") {
		t.Errorf("livetree db stats: %q", out)
	}
	refused(t, "--yes", in("db", "drop", "shop")...)
	done(t, in("db", "drop", "shop", "--yes")...)
	refused(t, "no database", in("db", "stats", "shop")...)
}

func TestSecretCommands(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	in := func(args ...string) []string { return append(args, "--data", data) }
	file := filepath.Join(data, "secrets", "default")
	first := read(t, file)
	if out := done(t, in("secret", "show", "default")...); out != first+"\n" {
		t.Error("livetree secret show does not print the secret alone")
	}
	id := done(t, in("secret", "show", "default", "--ids")...)
	if strings.Contains(id, first) || strings.TrimSpace(id) != admin.SecretID(first) {
		t.Errorf("livetree secret show --ids: %q", id)
	}
	refused(t, "the last secret", in("secret", "remove", "default", strings.TrimSpace(id))...)
	second := strings.Repeat("second", 7)
	code, out, errs := commandWith(second+"\n", in("secret", "add", "default", "--stdin")...)
	if code != 0 || strings.Contains(out+errs, second) || !strings.Contains(out, admin.SecretID(second)) {
		t.Errorf("livetree secret add --stdin: exit %d, %q, %q; want the id and not the secret", code, out, errs)
	}
	done(t, in("secret", "remove", "default", strings.TrimSpace(id))...)
	if got := read(t, file); got != second {
		t.Error("the file of secrets does not hold the second alone")
	}
	refused(t, "no secret with the id", in("secret", "remove", "default", "00000000")...)
}

func TestTokenCommands(t *testing.T) {
	data := t.TempDir()
	const secret = "a-secret-of-the-database-of-this-test"
	write(t, filepath.Join(data, "secrets", "shop"), secret+"\n")
	token := strings.TrimSpace(done(t, "token", "mint", "--data", data, "--db", "shop", "--uid", "ann", "--claim", `role="editor"`, "--claim", "level=3"))
	v, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Verify(t.Context(), token, auth.Database{Name: "shop", Secrets: []string{secret}})
	if left := time.Until(id.Expires); err != nil || id.Admin || left > time.Hour || left < 50*time.Minute {
		t.Errorf("the token gives %+v, %v; want ann for an hour", id, err)
	}
	code, out, errs := commandWith(token+"\n", "token", "inspect", "--data", data, "--db", "shop")
	if code != 0 || !strings.Contains(out, `"role":"editor"`) || !strings.Contains(out, "signature: matches") || errs != "" {
		t.Errorf("livetree token inspect: exit %d, %q, %q", code, out, errs)
	}
	t.Setenv("LIVETREE_SECRET", "another-secret-than-that-of-the-token")
	code, out, _ = commandWith(token, "token", "inspect", "--json")
	var inspection auth.Inspection
	if err := json.Unmarshal([]byte(out), &inspection); err != nil || code != 1 || inspection.Signature != "differs" {
		t.Errorf("livetree token inspect of another secret: exit %d, %+v, %v", code, inspection, err)
	}
	if out := done(t, "token", "mint", "--admin", "--json", "--expires", "0s"); strings.Contains(out, "expires") || !strings.Contains(out, `"token"`) {
		t.Errorf("livetree token mint --json --expires 0s: %q", out)
	}
	t.Setenv("LIVETREE_SECRET", "")
	refused(t, "--uid", "token", "mint", "--data", data, "--db", "shop")
	refused(t, "NAME=JSON", "token", "mint", "--data", data, "--db", "shop", "--uid", "a", "--claim", "role=editor")
	refused(t, "no secret in", "token", "mint", "--data", data, "--uid", "a")
	refused(t, "invalid database name", "token", "mint", "--data", data, "--uid", "a", "--db", "../shop")
}

func TestBackupCommand(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	target := filepath.Join(t.TempDir(), "backup")
	if out := done(t, "backup", target, "--data", data); !strings.Contains(out, target) {
		t.Errorf("livetree backup: %q", out)
	}
	if files, err := os.ReadDir(target); err != nil || len(files) == 0 {
		t.Errorf("the backup holds %v, %v", files, err)
	}
	refused(t, target, "backup", target, "--data", data)
}

// TestProfileCommand records while requests are made.
func TestProfileCommand(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	defer p.end()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.expect("PUT", "/rooms/lobby.json", fmt.Sprint(i), fmt.Sprint(i))
			}
		}
	}()
	// A second may be too short for a request on a busy machine.
	until := func(args ...string) (out string) {
		for deadline := time.Now().Add(patience); !strings.Contains(out, "default /rooms/lobby") && time.Now().Before(deadline); {
			out = done(t, append(args, "--data", data)...)
		}
		return out
	}
	out := until("profile", "--for", "1s")
	once := until("top", "--once")
	close(stop)
	<-stopped
	for _, want := range []string{"slowest requests", "busiest paths", "default /rooms/lobby", "queries without an index", "denied requests"} {
		if !strings.Contains(out, want) {
			t.Errorf("livetree profile lacks %q:\n%s", want, out)
		}
	}
	for _, want := range []string{"ready", "dev: on", "requests ", "latency ", "streams ", "disk      ok", "default /rooms/lobby"} {
		if !strings.Contains(once, want) {
			t.Errorf("livetree top --once lacks %q:\n%s", want, once)
		}
	}
	if strings.Contains(once, "\x1b") {
		t.Errorf("livetree top --once draws a screen: %q", once)
	}
	refused(t, "10m0s", "profile", "--for", "1h", "--data", data)
}

// TestAdminListenerIsFound, or it is said what to do.
func TestAdminListenerIsFound(t *testing.T) {
	p, data := operated(t)
	url, token := read(t, filepath.Join(data, "admin", "addr")), read(t, filepath.Join(data, "admin", "token"))
	t.Chdir(t.TempDir())
	refused(t, "no server with an admin listener runs on ./livetree-data", "db", "list")
	refused(t, "LIVETREE_ADMIN_TOKEN", "db", "list", "--admin-url", url)
	refused(t, "https:", "db", "list", "--admin-url", "http://db.example.com:9001", "--data", data)
	t.Setenv("LIVETREE_ADMIN_TOKEN", token)
	done(t, "db", "list", "--admin-url", url)
	t.Setenv("LIVETREE_ADMIN_TOKEN", "wrong")
	refused(t, "admin/token", "db", "list", "--admin-url", url)
	p.end()
	refused(t, "does not answer", "db", "list", "--admin-url", url)
}

// TestTopOnATerminal runs livetree top as a person sees it.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	terminal := newScreen(t)
	terminal.run("top", "--data", data)
	text := terminal.shows("q ends") // which is the last line
	if !strings.HasPrefix(text, "livetree ") || !strings.Contains(text, "\nlatency ") || !strings.Contains(text, "busiest paths") {
		t.Errorf("the screen is\n%s", text)
	}
	terminal.press("q")
	if text := terminal.shows("ended with 0"); strings.Contains(text, "busiest") {
		t.Errorf("the screen was not given back:\n%s", text)
	}
}
