package server

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// told is an operation as firebase-tools reads it.
type told struct {
	Name      string   `json:"name"`
	Path      []string `json:"path"`
	Bytes     int64    `json:"bytes"`
	Timestamp int64    `json:"timestamp"`
	Allowed   bool     `json:"allowed"`
	Unindexed bool     `json:"unIndexed"`
}

// TestRequestsAreToldToThoseWhoProfile: what is done with the data, and nothing else.
func TestRequestsAreToldToThoseWhoProfile(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	secret := m.file("secrets", "default")
	lines := m.profile(secret)
	begun := time.Now().Add(-time.Minute).UnixMilli()
	credential := "?auth=" + secret
	m.send("GET", m.public+"/.settings/dialect.json"+credential, "", "")
	m.send("PUT", m.public+"/a/b.json"+credential, "", `"text"`)
	m.send("PATCH", m.public+"/.json"+credential, "", `{"c":1}`)
	m.send("GET", m.public+"/.settings/rules.json"+credential, "", "")
	m.send("GET", m.public+"/a/b.json"+credential, "", "")
	m.send("GET", m.public+"/denied.json", "", "")
	m.send("GET", m.public+"/a.json"+credential+`&orderBy="x"`, "", "")
	for _, want := range []struct {
		name, path string
		denied     bool
		unindexed  bool
	}{
		{name: "rest-write", path: "a/b"},
		{name: "rest-update", path: ""},
		{name: "rest-read", path: "a/b"},
		{name: "rest-read", path: "denied", denied: true},
		{name: "listener-listen", path: "a", unindexed: true},
		{name: "rest-read", path: "a"},
	} {
		got := nextOperation(t, lines)
		if got.Name != want.name || !slices.Equal(got.Path, strings.FieldsFunc(want.path, func(r rune) bool { return r == '/' })) ||
			got.Allowed == want.denied || got.Unindexed != want.unindexed || got.Timestamp < begun {
			t.Errorf("an operation is told as %+v, want %+v", got, want)
		}
	}
}

// profile opens a stream of the operations on the default database.
func (m *managed) profile(secret string) *bufio.Scanner {
	m.t.Helper()
	req, err := http.NewRequest("GET", m.public+"/.settings/profile.json", http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+secret)
	stream, err := m.client.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = stream.Body.Close() })
	if stream.StatusCode != http.StatusOK {
		m.t.Fatal(stream.Status)
	}
	return bufio.NewScanner(stream.Body)
}

// TestClientsAreToldToThoseWhoProfile: what a client of an SDK does and is told, and in
// the metrics and in top as well.
func TestClientsAreToldToThoseWhoProfile(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	secret := m.file("secrets", "default")
	lines := m.profile(secret)
	var status, at string
	clients := 0 // more than one if a recording was too short
	report := m.record(func() {
		clients++
		at = fmt.Sprint("a", clients)
		status = m.useSDK(secret, at)
		wantToldOfSDK(t, lines, at)
	})
	_, page := m.send("GET", m.url+"/metrics", m.token, "")
	for _, want := range []struct{ in, text string }{
		{page, fmt.Sprintf(`livetree_client_operations_total{operation="realtime-read",sdk="android"} %d`, 2*clients)},
		{page, fmt.Sprintf(`livetree_client_operations_total{operation="concurrent-disconnect",sdk="android"} %d`, clients)},
		{status, `"clients":1`}, {status, `"client_kinds":{"android":1}`},
		{report, `"broadcast":1`}, {report, `"verb":"transaction","path":"/` + at + `/d"`}, {report, `"path":"/denied"`},
	} {
		if !strings.Contains(want.in, want.text) {
			t.Errorf("%s\nlacks %s", want.in, want.text)
		}
	}
}

// useSDK is a client of an SDK that does a bit of everything at a location. It returns the status of the server while it is there.
func (m *managed) useSDK(secret, at string) (status string) {
	m.t.Helper()
	c := wiretest.Dial(m.t, wiretest.Dialing{
		Address: strings.TrimPrefix(m.public, "https://"), Target: "/.ws?v=5&ns=default",
		Header: http.Header{"User-Agent": {"Firebase/5/22.0.0/34/Android"}},
		TLS:    &tls.Config{RootCAs: m.authority(), ServerName: "localhost"},
	})
	c.Hello()
	c.Ask("g", `{"p":"/denied"}`)
	c.Ask("auth", `{"cred":"`+secret+`"}`)
	c.Ask("p", `{"p":"/`+at+`/b","d":"text"}`)
	c.Ask("q", `{"p":"/`+at+`","h":""}`)
	c.Ask("m", `{"p":"/`+at+`","d":{"c":1}}`)
	c.Ask("n", `{"p":"/`+at+`"}`)
	c.Ask("p", `{"p":"/`+at+`/d","d":1,"h":""}`)
	c.Ask("g", `{"p":"/`+at+`/b"}`)
	_, status = m.send("GET", m.url+"/v1/status", m.token, "")
	c.Close(1000)
	return status
}

// wantToldOfSDK reads what a profile tells of useSDK.
func wantToldOfSDK(t *testing.T, lines *bufio.Scanner, at string) {
	t.Helper()
	for _, want := range []struct {
		name, path string
		bytes      int64 // at least
		denied     bool
	}{
		{name: "concurrent-connect"},
		{name: "realtime-read", path: "denied", denied: true},
		{name: "realtime-write", path: at + "/b", bytes: 6},
		{name: "listener-listen", path: at, bytes: 12},
		{name: "listener-broadcast", path: at, bytes: 1},
		{name: "realtime-update", path: at, bytes: 7},
		{name: "listener-unlisten", path: at},
		{name: "realtime-transaction", path: at + "/d", bytes: 1},
		{name: "realtime-read", path: at + "/b", bytes: 6},
		{name: "concurrent-disconnect"},
	} {
		got := nextOperation(t, lines)
		if got.Name != want.name || !slices.Equal(got.Path, strings.FieldsFunc(want.path, func(r rune) bool { return r == '/' })) ||
			got.Allowed == want.denied || got.Bytes < want.bytes {
			t.Errorf("an operation is told as %+v, want %+v", got, want)
		}
	}
}

// nextOperation reads a stream up to the next one.
func nextOperation(t *testing.T, lines *bufio.Scanner) (o told) {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), `data: {"name"`); ok {
			if err := json.Unmarshal([]byte(`{"name"`+data), &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return o
}
