package main

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/client"
)

const (
	roomsJSON  = "testdata/rules/rooms.json"
	roomsCases = "testdata/rules/rooms.txt"
)

func TestRulesUsage(t *testing.T) {
	if code, out, errs := command("rules", "--help"); code != 0 || !strings.Contains(out, "  check ") || errs != "" {
		t.Errorf("livetree rules --help: exit %d, %q, %q; want the commands", code, out, errs)
	}
	if code, out, errs := command("rules"); code != 1 || out != "" || !strings.Contains(errs, "  check ") {
		t.Errorf("livetree rules: exit %d, %q, %q; want the commands as an error", code, out, errs)
	}
	t.Setenv("LIVETREE_AUTH", "correct horse")
	for _, name := range []string{"check", "test", "get", "set"} {
		code, out, errs := command("rules", name, "--help")
		if code != 0 || errs != "" || !strings.Contains(out, "  livetree rules "+name) || !strings.Contains(out, "xample") || strings.Contains(out, "horse") {
			t.Errorf("livetree rules %s --help: exit %d, %q, %q", name, code, out, errs)
		}
	}
}

func TestRulesWrongUsage(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	document := filepath.Join(here, roomsJSON)
	tests := []struct{ args, want string }{
		{"chekc", `unknown command "rules chekc"`},
		{"check", "rules check takes FILE, but was given nothing"},
		{"check a b", `was given "a" "b"`},
		{"check nowhere.json", "nowhere.json: no such file"},
		{"check .", "is a directory"},
		{"test " + document, "rules test takes FILE CASES, but was given"},
		{"test " + document + " nowhere.txt", "nowhere.txt: no such file"},
		{"get now", "rules get takes no arguments"},
		{"get", "no server runs on"},
		{"get --url localhost:9000", "--url must be like"},
		{"get --url https://localhost:9000/?auth=horse", "LIVETREE_AUTH"},
		{"get --url https://horse@localhost:9000", "LIVETREE_AUTH"},
		{"get --url https://localhost:9000/a/b", "--url must name a server and nothing else"},
		{"get --url http://db.example.com --auth horse", "--url must be https"},
		{"get --url https://localhost:9000 --ca " + document, "holds no certificate"},
		{"set --url https://localhost:9000", "rules set takes FILE, but was given nothing"},
	}
	if code, _, errs := command("rules", "get", "--url", "https://localhost:9000", "--ca", "nowhere.pem"); code != client.ExitFile || !oneLine(errs) {
		t.Errorf("livetree rules get --ca nowhere.pem: exit %d, %q", code, errs)
	}
	if code, _, errs := command("rules", "set", "nowhere.json", "--url", "https://localhost:9000"); code != client.ExitFile || !oneLine(errs) || !strings.Contains(errs, "nowhere.json: no such file") {
		t.Errorf("livetree rules set nowhere.json: exit %d, %q", code, errs)
	}
	for _, test := range tests {
		code, out, errs := command(append([]string{"rules"}, strings.Fields(test.args)...)...)
		if code != 1 || out != "" || !oneLine(errs) || !strings.Contains(errs, test.want) || strings.Contains(errs, "horse") {
			t.Errorf("livetree rules %s: exit %d, %q, %q; want exit 1 and one line with %q", test.args, code, out, errs, test.want)
		}
	}
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	if code, out, errs := command("rules", "check", roomsJSON); code != 0 || out != roomsJSON+": ok\n" || errs != "" {
		t.Errorf("livetree rules check rooms.json: exit %d, %q, %q", code, out, errs)
	}
	const broken = "testdata/rules/broken.json"
	code, out, errs := command("rules", "check", broken)
	if code != 1 || out != "" || !strings.HasPrefix(errs, broken+brokenProblems[0]) || !strings.Contains(errs, broken+brokenProblems[1]) || !strings.HasSuffix(errs, broken+brokenProblems[2]) {
		t.Errorf("livetree rules check broken.json: exit %d, %q\n%swant\n%s", code, out, errs, strings.Join(brokenProblems, ""))
	}
}

// brokenProblems is what is wrong with broken.json.
var brokenProblems = []string{
	`:3:15: Expression must evaluate to a boolean.
    ".read": "auth",
              ^
`, `:4:13: Unknown variable 'aut'.
	".write": "aut != null",
	           ^
`, `:5:25: Invalid rule expression.  Expected 'true', 'false', or an expression string.
    "a": { ".validate": 1 }
                        ^
`}

func TestRulesTest(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "coverage.html")
	code, out, errs := command("rules", "test", roomsJSON, "--html", page, roomsCases)
	if code != 0 || errs != "" || out != roomsReport {
		t.Errorf("livetree rules test: exit %d, %q\n%swant\n%s", code, errs, out, roomsReport)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "nobody speaks for somebody else") {
		t.Errorf("the page is %.200q, %v", text, err)
	}
	// docs/rules.md shows these files and what they give.
	manual, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{roomsJSON, roomsCases} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(manual), string(text)) {
			t.Errorf("docs/rules.md does not show %s as it is", name)
		}
	}
	if !strings.Contains(string(manual), strings.ReplaceAll(roomsReport, roomsJSON, "rooms.json")) {
		t.Error("docs/rules.md does not show the report as it is")
	}
}

const roomsReport = `cases: 8 passed, 0 failed

` + roomsJSON + `: 8 of 8 rules asked, 12 of 15 outcomes seen
  6:18   /rooms/$room .read                               true 1×, false 1×
  10:23  /rooms/$room/messages/$message .write            true 3×, false 1×
! 11:26  /rooms/$room/messages/$message .validate         true 3×, never false
  12:34  /rooms/$room/messages/$message/by .validate      true 2×, false 1×
! 13:36  /rooms/$room/messages/$message/text .validate    true 1×, never false
! 14:34  /rooms/$room/messages/$message/at .validate      true 3×, never false
  15:38  /rooms/$room/messages/$message/$other .validate  false 1×
  21:16  /directory .read                                 true 1×, false 1×
`

func TestRulesTestFails(t *testing.T) {
	t.Parallel()
	const failing, broken = "testdata/rules/failing.txt", "testdata/rules/broken.txt"
	const want = `FAIL ` + failing + `:5: everybody may look
  read /rooms/blue as={"uid": "eve"}
  want allowed
  got  denied
    6:18 /rooms/blue:.read: "data.child('members').child(auth.uid).exists()" => false

FAIL ` + failing + `:9: put /elsewhere
  want allowed
  got  denied
    no rule was asked

cases: 1 passed, 2 failed
`
	if code, out, errs := command("rules", "test", roomsJSON, failing); code != 1 || errs != "" || !strings.HasPrefix(out, want) {
		t.Errorf("livetree rules test: exit %d, %q\n%swant\n%s", code, errs, out, want)
	}
	const problems = broken + `:1:1: unknown command "raed": there are data, now, auth, read, put, patch, post, delete and priority
raed /a
^
` + broken + `:6:7: `
	if code, out, errs := command("rules", "test", roomsJSON, broken); code != 1 || out != "" || !strings.HasPrefix(errs, problems) || !strings.Contains(errs, broken+":10:1: ") {
		t.Errorf("livetree rules test: exit %d, %q\n%swant\n%s", code, out, errs, problems)
	}
}

// TestRulesGetAndSet talks to a server of its own.
func TestRulesGetAndSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "livetree-data")
	server := start(t, serving(dir)...)
	secret, err := os.ReadFile(filepath.Join(dir, "secrets", "default"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	document, broken := filepath.Join(here, roomsJSON), filepath.Join(here, "testdata/rules/broken.json")
	source, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + server.addr
	check := func(wantCode int, wantOut, wantErrs string, args ...string) {
		t.Helper()
		code, out, errs := command(append([]string{"rules"}, args...)...)
		if code != wantCode || out != wantOut || !strings.Contains(errs, wantErrs) || wantErrs == "" && errs != "" {
			t.Errorf("livetree rules %q: exit %d, %q, %q; want exit %d, %q and %q", args, code, out, errs, wantCode, wantOut, wantErrs)
		}
		if strings.Contains(errs, strings.TrimSpace(string(secret))) {
			t.Errorf("livetree rules %q prints the secret", args)
		}
	}
	const closed = "{\n  \"rules\": {\n    \".read\": false,\n    \".write\": false\n  }\n}\n"

	t.Chdir(t.TempDir())
	ca := filepath.Join(dir, "tls", "ca.pem")
	check(76, "", "certificate", "get", "--url", address)
	check(77, "", "Permission denied; set LIVETREE_AUTH", "get", "--url", address, "--ca", ca)
	check(77, "", "livetree: the server answered 401", "get", "--url", address, "--ca", ca, "--auth", "wrong")

	t.Chdir(filepath.Dir(dir)) // where ca.pem is found
	t.Setenv("LIVETREE_AUTH", strings.TrimSpace(string(secret)))
	check(0, closed, "", "get", "--url", address)
	check(0, closed, "", "get", "--url", address+"/", "--db", "default")
	check(0, closed, "", "get", "--url", address+"/?ns=default")
	check(1, "", "livetree: the server answered", "get", "--url", address, "--db", "other")
	check(65, "", broken+brokenProblems[1], "set", broken, "--url", address)
	check(65, "", broken+brokenProblems[1], "set", "--dry-run", broken, "--url", address)
	check(74, "", "open nowhere.json: no such file", "set", "nowhere.json", "--url", address)
	check(0, "the server would take the rules; nothing was changed\n", "", "set", document, "--url", address, "--dry-run")
	check(0, closed, "", "get", "--url", address)
	t.Setenv("LIVETREE_URL", address)
	check(0, "the rules are set\n", "on "+address, "set", document)
	check(0, string(source), "", "get")
	if code := server.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("the server: exit %d", code)
	}
	check(69, "", "connection refused", "get")
}

// TestRulesSecretStaysHere: a server that answers with a redirect, or with the
// secret, gets it neither forwarded nor printed.
func TestRulesSecretStaysHere(t *testing.T) {
	t.Chdir(t.TempDir())
	mux := http.NewServeMux()
	var asked []string
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if r.URL.Query().Get("ns") == "away" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, "you said "+r.Header.Get("Authorization"), http.StatusTeapot)
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	certificate, err := x509.ParseCertificate(server.TLS.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})))
	codes := map[string]int{"away": 76, "home": 1}
	for database, want := range map[string]string{"away": "the server answered 307", "home": "the server answered 418: you said Bearer (secret)"} {
		code, out, errs := command("rules", "get", "--url", server.URL, "--ca", "ca.pem", "--auth", "horse", "--db", database)
		if code != codes[database] || out != "" || !oneLine(errs) || !strings.Contains(errs, want) || strings.Contains(errs, "horse") {
			t.Errorf("livetree rules get: exit %d, %q, %q; want %q", code, out, errs, want)
		}
	}
	if len(asked) != 2 {
		t.Errorf("the server was asked %q, want no redirect to be followed", asked)
	}
}
