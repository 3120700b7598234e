//go:build unix

package trust_test

import (
	"fmt"
	"strings"
	"testing"
)

// costlyRules let an ordinary client work at /busy. What eve may do there looks at her
// name, in each way that has to do with how long it is.
const costlyRules = `{"rules": {
	"busy": {".read": true, ".write": true},
	"users": {"$user": {".write": "auth.uid === $user"}},
	"typed": {"$p": {".write": true, ".validate": "root.child('users').child(auth.uid).child('name').isString()"}},
	"same": {"$p": {".write": true, ".validate": "root.child('users').child(auth.uid).child('name').val() == 'Eve'"}},
	"counted": {"$p": {".write": true, ".validate": "root.child('users').child(auth.uid).child('name').val().length > 1"}},
	"matched": {"$p": {".write": true, ".validate": "root.child('users').child(auth.uid).child('name').val().matches(/^E/)"}},
	"shown": {".read": "root.child('users').child(auth.uid).child('name').val().length > 1 && root.child('busy').exists()"}
}}`

// TestCostlyRules: a user gives herself a name of 10 MiB and sends PATCHes of 1,500 posts
// whose rules look at it, each from a client that is gone at once, and opens streams that
// are judged again with every write of an ordinary client. That client's writes go
// through: none waits longer than a write may wait.
func TestCostlyRules(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	c := newClient(t, p, 1)
	eve := tokenOf(t, "eve")
	c.must(t, request{method: "PUT", target: "/.settings/rules.json?auth=" + secret, body: costlyRules})
	c.must(t, request{method: "PUT", target: "/users/eve/name.json?auth=" + eve, body: `"` + strings.Repeat("Eve-", 10<<18) + `"`})
	c.must(t, request{method: "PUT", target: "/busy.json", body: `{"n":0}`})
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{addr: p.address(), trusted: trusted}
	for range 3 {
		conn, err := h.speak("GET /shown.json?auth=" + eve + " HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	var posts []string
	for i := range 1500 {
		posts = append(posts, fmt.Sprintf(`"p%d":1`, i))
	}
	body := "{" + strings.Join(posts, ",") + "}"
	for _, at := range []string{"typed", "same", "counted", "matched"} {
		for range length(2, 5, 20) {
			conn, err := h.speak(fmt.Sprintf("PATCH /%s.json?auth=%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", at, eve, len(body), body))
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
		if _, problem := work(c, at); problem != "" {
			t.Errorf("while rules of /%s are judged: %s", at, problem)
		}
	}
}
