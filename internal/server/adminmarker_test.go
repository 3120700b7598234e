package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// TestNoCredentialIsTold sends secrets and tokens in every way that clients do,
// right and wrong, and then looks for them wherever an operator looks.
func TestNoCredentialIsTold(t *testing.T) {
	t.Parallel()
	const marker = "mArKeRsEcReT"
	secret := strings.Repeat(marker, 3) + "0123"
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.Secret = secret
		c.AccessLog = true
	})
	token, err := auth.Mint(secret, auth.Claims{Data: map[string]any{"uid": "ann"}, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	signedIn, code := m.signIn(secret)
	hidden := []string{signedIn, signedIn[strings.LastIndexByte(signedIn, '.')+1:], code, marker, token, token[strings.LastIndexByte(token, '.')+1:], m.token}

	denied := m.denials()
	recorded := m.record(func() { m.tellCredentials(secret, token, marker) })
	places := map[string]string{"the recording": recorded, "the denials": denied()}
	for _, path := range []string{
		"/metrics", "/v1/audit", "/v1/config", "/v1/history", "/v1/databases/default/rules/history", "/v1/status", "/v1/databases", "/v1/databases/default", "/v1/databases/default/secrets", "/readyz",
		"/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1",
		"/debug/pprof/allocs?debug=1", "/debug/pprof/threadcreate?debug=1", "/debug/pprof/cmdline",
	} {
		_, places[path] = m.admin("GET", path, "")
	}
	m.stop()
	places["the log"], places["the terminal"] = m.log.String(), m.out.String()
	for place, text := range places {
		if text == "" {
			t.Errorf("%s is empty", place)
		}
		for _, word := range hidden {
			if i := strings.Index(text, word); i >= 0 {
				t.Errorf("%s shows a credential: …%.200s", place, text[max(0, i-100):i])
			}
		}
	}
	if !strings.Contains(places["/metrics"], `livetree_auth_failed_total{reason="signature"}`) || !strings.Contains(recorded, `"path":"/a"`) ||
		!strings.Contains(places["the denials"], `\"uid\":\"ann\"`) {
		t.Error("the requests were not counted and recorded: this test saw nothing")
	}
}

// denials looks at what rules deny until the function is called that it returns, which returns all
// of it.
func (m *managed) denials() func() string {
	m.t.Helper()
	ctx, leave := context.WithCancel(m.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", m.url+"/v1/databases/default/denials", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+m.token)
	answer, err := m.client.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		m.t.Fatalf("GET denials = %v, %v", answer, err)
	}
	return func() string {
		defer leave()
		defer answer.Body.Close()
		var text strings.Builder
		for lines := bufio.NewScanner(answer.Body); lines.Scan() && strings.Count(text.String(), "event: denial") < 2; {
			text.WriteString(lines.Text() + "\n")
		}
		return text.String()
	}
}

// tellCredentials sends credentials in all ways that clients do.
func (m *managed) tellCredentials(secret, token, marker string) {
	m.t.Helper()
	for _, credential := range []string{secret, token, secret + "x", token + "x", marker, m.token} {
		for _, path := range []string{
			"/a.json?auth=", "/a.json?access_token=", "/a.json?ns=", "/a.json%3Fauth=", "/.settings/rules.json?auth=",
			"/a.json?auth=" + secret + "&access_token=", "/a.json?callback=f&auth=",
		} {
			_, _ = m.send("GET", m.public+path+url.QueryEscape(credential), "", "")
			_, _ = m.send("PUT", m.public+path+url.QueryEscape(credential), credential, `{"b":1}`)
		}
		_, _ = m.send("GET", m.url+"/v1/databases?auth="+url.QueryEscape(credential), credential, "")
		_, _ = m.send("POST", m.url+"/v1/databases", m.token, `{"name":"`+credential+`x"`)
		r, err := http.NewRequest("GET", m.public+"/a.json", nil)
		if err != nil {
			m.t.Fatal(err)
		}
		r.Header.Set("Referer", m.public+"/a.json?auth="+credential)
		r.Header.Set("Authorization", "Basic "+credential)
		if answer, err := m.client.Do(r); err == nil {
			answer.Body.Close()
		}
	}
}

// signIn signs in with a secret and uses the session, and with a code that is used twice.
// It returns the session and the code.
func (m *managed) signIn(secret string) (session, code string) {
	m.t.Helper()
	var link struct{ URL string }
	status, text := m.admin("POST", "/v1/codes", "")
	if err := json.Unmarshal([]byte(text), &link); err != nil || status != http.StatusCreated {
		m.t.Fatalf("POST /v1/codes = %d %s", status, text)
	}
	_, code, _ = strings.Cut(link.URL, "#code=")
	var signed struct{ Session string }
	for _, body := range []string{`{"code":"` + code + `"}`, `{"code":"` + code + `"}`, `{"credential":"` + secret + `x"}`, `{"credential":"` + secret + `"}`} {
		if _, text = m.send("POST", m.url+"/v1/sessions", "", body); strings.Contains(text, "session") {
			if err := json.Unmarshal([]byte(text), &signed); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	for _, path := range []string{"/v1/status", "/v1/databases/default/data/a.json?auth=" + secret, "/v1/databases", "/console/db/" + signed.Session} {
		_, _ = m.send("GET", m.url+path, signed.Session, "")
	}
	_, _ = m.send("PUT", m.url+"/v1/databases/default/data/.settings/rules.json", signed.Session, `{"rules":{}}`)
	if status, text := m.send("DELETE", m.url+"/v1/sessions/current", signed.Session, ""); status != http.StatusOK {
		m.t.Errorf("signing out = %d %s", status, text)
	}
	return signed.Session, code
}
