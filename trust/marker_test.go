//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"

	"github.com/livetree/livetree/internal/proof"
)

// TestMarkers sends a secret and a token in all the places where a client can put
// them, right and wrong, and then looks for them wherever the server tells
// something.
func TestMarkers(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--admin-addr", "127.0.0.1:0", "--log-level", "DEBUG", "--access-log")
	credentials := markers(t)
	c := newClient(t, p, 1)
	told := places{}
	sendMarkers(t, c, credentials, told)
	sendRaw(t, p, credentials, told)
	readAdmin(t, p, told)
	if err := p.terminate(); err != nil {
		t.Fatal(err)
	}
	told["the log"] = p.log.String()
	for _, place := range []string{"the log", "/metrics", "/debug/pprof/goroutine?debug=2", "answers"} {
		if told[place] == "" {
			t.Errorf("%s is empty: this test saw nothing there", place)
		}
	}
	found := told.search(credentials)
	for _, place := range found {
		t.Error(place)
	}
	figures.Report(t, "markers", proof.Count("places", len(told)), proof.Count("bytes", told.size()), proof.Count("hits", len(found)))
}

// markers returns credentials that appear nowhere else: the secret of the
// database, a token signed with it, and wrong ones of both kinds.
func markers(t *testing.T) []string {
	t.Helper()
	token, err := auth.Mint(secret, auth.Claims{Data: map[string]any{"uid": "mArKeR"}, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := auth.Mint("wRoNgWrOnGwRoNgWrOnGwRoNgWrOnGwRoNgWrOnG", auth.Claims{Data: map[string]any{"uid": "mArKeR"}})
	if err != nil {
		t.Fatal(err)
	}
	return []string{secret, token, "wRoNgSeCrEtwRoNgSeCrEt", wrong}
}

// Places are what was told, by where.
type places map[string]string

func (p places) add(place, text string) { p[place] += text + "\n" }

func (p places) size() (bytes int) {
	for _, text := range p {
		bytes += len(text)
	}
	return bytes
}

// search returns each place that shows a credential, as it is or encoded.
func (p places) search(credentials []string) (found []string) {
	for place, text := range p {
		for _, credential := range credentials {
			// Of a token the signature alone is enough to be told.
			word := credential[strings.LastIndexByte(credential, '.')+1:]
			for _, form := range []string{
				word, url.QueryEscape(word), base64.StdEncoding.EncodeToString([]byte(word))[:len(word)],
				hex.EncodeToString([]byte(word)), strings.ToLower(word), strings.ToUpper(word),
			} {
				if i := strings.Index(text, form); i >= 0 {
					found = append(found, fmt.Sprintf("%s shows a credential behind …%s", place, text[max(0, i-200):i]))
					break
				}
			}
		}
	}
	return found
}

// sendMarkers sends well-formed requests.
func sendMarkers(t *testing.T, c *client, credentials []string, told places) {
	t.Helper()
	for _, x := range credentials {
		q := url.QueryEscape(x)
		for _, r := range []request{
			{method: "GET", target: "/a.json?auth=" + q},
			{method: "GET", target: "/a.json?access_token=" + q},
			{method: "GET", target: "/a.json?auth=" + q + "&access_token=" + q + "x"},
			{method: "GET", target: "/a.json?auth=" + q + "&auth=" + q},
			{method: "GET", target: "/a.json?print=pretty&auth=" + q + "&nonsense=1"},
			{method: "GET", target: "/a.json?auth=" + q + "%zz"},
			{method: "GET", target: "/a?auth=" + q},
			{method: "GET", target: "/.settings/rules.json?auth=" + q},
			{method: "GET", target: "/.settings/nothing.json?auth=" + q},
			{method: "GET", target: "/a.json", header: []string{"Authorization", "Bearer " + x}},
			{method: "GET", target: "/a.json", header: []string{"Authorization", "bearer  " + x}},
			{method: "GET", target: "/a.json", header: []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+x))}},
			{method: "GET", target: "/a.json", header: []string{"Authorization", x}},
			{method: "GET", target: "/a.json", header: []string{"Authorization", "Bearer " + x, "Authorization", "Bearer x" + x}},
			{method: "GET", target: "/a.json", header: []string{"Referer", c.base + "/a.json?auth=" + q}},
			{method: "GET", target: "/a.json", header: []string{"Cookie", "session=" + x}},
			{method: "GET", target: "/a.json", header: []string{"X-Forwarded-For", x, "User-Agent", x, "traceparent", x, "X-Request-Id", x}},
			{method: "GET", target: "/a.json?auth=" + q, header: []string{"Accept", "text/event-stream", "Last-Event-ID", x}},
			{method: "PUT", target: "/a.json?auth=" + q, body: `{"a":`},
			{method: "PUT", target: "/.settings/rules.json?auth=" + q, body: `{"rules":{".read":"auth.uid ==="}}`},
			{method: "PUT", target: "/a.json?auth=" + q, body: `1`, header: []string{"If-Match", x}},
			{method: "POST", target: "/a.json?auth=" + q, header: []string{"X-HTTP-Method-Override", x}, body: "1"},
			{method: "POST", target: "/token?assertion=" + q, body: "grant_type=x&assertion=" + q, header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
			{method: "PUT", target: "/a.json?auth=" + q, body: "1", header: []string{"Content-Encoding", x}},
		} {
			a, err := c.watchBriefly(r)
			if err != nil && !strings.Contains(err.Error(), "invalid URL") {
				told.add("errors", "") // what the client's own library says is not the server's
			}
			told.add("answers", fmt.Sprint(a.header, a.body))
		}
	}
}

// watchBriefly is send, but takes only the head of a stream.
func (c *client) watchBriefly(r request) (answer, error) {
	if len(r.header) == 0 || r.header[0] != "Accept" {
		a, _, err := c.send(r)
		return a, err
	}
	req, err := r.build(context.Background(), c.base)
	if err != nil {
		return answer{}, err
	}
	got, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	got.Body.Close()
	return answer{status: got.StatusCode, header: got.Header}, nil
}

// sendRaw sends what no library sends.
func sendRaw(t *testing.T, p *process, credentials []string, told places) {
	t.Helper()
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range credentials {
		for _, head := range []string{
			"GET /a.json?auth=" + x + " HTTP/9.9\r\n\r\n",
			"GET /a.json?auth=" + x + "\r\n\r\n",
			"GET http://[" + x + "/a.json HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /a.json%zz?auth=" + x + " HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /a.json?auth=" + x + " HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			"GET /a.json HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + x + "\r\nBad Header: x\r\n\r\n",
			"GET /a.json?auth=" + x + strings.Repeat("x", 1<<18) + " HTTP/1.1\r\nHost: h\r\n\r\n",
			"PUT /a.json?auth=" + x + " HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n1", // and goes away
		} {
			conn, err := tls.Dial("tcp", p.address(), &tls.Config{RootCAs: trusted})
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, _ = conn.Write([]byte(head))
			_ = conn.CloseWrite()
			line, _ := bufio.NewReader(conn).ReadString('\x00') // until the end
			told.add("answers", line)
			conn.Close()
		}
		// Plain text on the port of TLS.
		plain := &http.Client{Timeout: patience}
		if got, err := plain.Get("http://" + p.address() + "/a.json?auth=" + url.QueryEscape(x)); err == nil {
			told.add("answers", fmt.Sprint(got.Header))
			got.Body.Close()
		}
	}
}

// readAdmin reads all pages of the admin listener.
func readAdmin(t *testing.T, p *process, told places) {
	t.Helper()
	for _, page := range []string{
		"/metrics", "/readyz", "/livez", "/v1/status", "/v1/databases", "/v1/databases/default/secrets", "/debug/pprof/cmdline",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1",
	} {
		told.add(page, adminOf(t, p, "GET", page, "").body)
	}
}

// adminOf asks a server as its operator.
func adminOf(t *testing.T, p *process, method, page, body string) answer {
	t.Helper()
	base, err := os.ReadFile(filepath.Join(p.dir, "admin", "addr"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(p.dir, "admin", "token"))
	if err != nil {
		t.Fatal(err)
	}
	admin := &client{base: strings.TrimSpace(string(base)), http: &http.Client{Timeout: patience}}
	defer admin.http.CloseIdleConnections()
	a, _, err := admin.send(request{method: method, target: page, body: body, header: []string{"Authorization", "Bearer " + strings.TrimSpace(string(token))}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
