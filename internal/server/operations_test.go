package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
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
	m := startManaged(t, t.TempDir(), nil)
	secret := m.file("secrets", "default")
	req, err := http.NewRequest("GET", m.public+"/.settings/profile.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+secret)
	stream, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	begun := time.Now().Add(-time.Minute).UnixMilli()
	credential := "?auth=" + secret
	m.send("GET", m.public+"/.settings/dialect.json"+credential, "", "")
	m.send("PUT", m.public+"/a/b.json"+credential, "", `"text"`)
	m.send("PATCH", m.public+"/.json"+credential, "", `{"c":1}`)
	m.send("GET", m.public+"/.settings/rules.json"+credential, "", "")
	m.send("GET", m.public+"/a/b.json"+credential, "", "")
	m.send("GET", m.public+"/denied.json", "", "")
	m.send("GET", m.public+"/a.json"+credential+`&orderBy="x"`, "", "")
	lines := bufio.NewScanner(stream.Body)
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
