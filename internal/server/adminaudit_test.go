package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

// TestEveryChangeIsAudited makes each kind of change with a session: of rules, secrets, accounts,
// databases and backups, and signs in and out. All are in the audit list and the log, with the
// scope and the id of the session, and not the session.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	var signed struct{ Session string }
	if status, text := m.send("POST", m.url+"/v1/sessions", "", `{"credential":"`+m.token+`"}`); status != http.StatusCreated || json.Unmarshal([]byte(text), &signed) != nil {
		t.Fatalf("signing in = %d %s", status, text)
	}
	second := strings.Repeat("second", 7)
	key := publicKey(t)
	for _, change := range [][3]string{
		{"PUT", "/v1/databases/default/data/.settings/rules.json", `{"rules":{".read":true}}`},
		{"POST", "/v1/databases/default/secrets", `{"value":"` + second + `"}`},
		{"DELETE", "/v1/databases/default/secrets/" + admin.SecretID(second), ""},
		{"POST", "/v1/databases/default/accounts", `{"name":"robot","token_uri":"https://localhost/oauth2/token","public_key":` + key + `}`},
		{"DELETE", "/v1/databases/default/accounts/robot", ""},
		{"POST", "/v1/databases", `{"name":"shop"}`},
		{"DELETE", "/v1/databases/shop", ""},
		{"POST", "/v1/backup", `{"target":"` + filepath.Join(t.TempDir(), "backup") + `"}`},
		{"POST", "/v1/databases/default/tokens", `{"uid":"ann"}`},
		{"DELETE", "/v1/sessions/current", ""},
	} {
		status, text := m.send(change[0], m.url+change[1], signed.Session, change[2])
		if status >= 300 {
			t.Errorf("%s %s = %d %s", change[0], change[1], status, text)
		}
	}
	var list struct{ Entries []admin.Audited }
	if err := json.Unmarshal([]byte(m.want(200, "GET", "/v1/audit", "")), &list); err != nil {
		t.Fatal(err)
	}
	m.stop()
	log := m.log.String()
	want := []string{
		"signed in", "set the rules", "added a secret", "removed a secret", "added a key to a service account", "revoked keys of a service account",
		"made a database", "dropped a database", "made a backup", "made a token", "signed out",
	}
	for i, action := range want {
		if len(list.Entries) != len(want) {
			t.Fatalf("the audit list is %+v, want %q", list.Entries, want)
		}
		e := list.Entries[len(want)-1-i]
		if e.Action != action || e.Scope != "operator" || e.Session == "" || strings.Contains(signed.Session, e.Session) {
			t.Errorf("the entry is %+v, want %s by the operator's session", e, action)
		}
		if !strings.Contains(log, "action=\""+action+"\"") && !strings.Contains(log, `"action":"`+action+`"`) {
			t.Errorf("the log does not have %q", action)
		}
	}
	if strings.Contains(log, signed.Session) {
		t.Error("the log has the session")
	}
}

// publicKey returns the public half of a new key, as a JSON string.
func publicKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
