//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestForgedResume: a client that makes up resume ids, and tries all of them, learns
// nothing that was overwritten before its location was opened: by the time, by data or
// by rules.
func TestForgedResume(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	c := newClient(t, p, 1)
	opens := time.Now().Add(2 * time.Second).UnixMilli()
	rules := fmt.Sprintf(`{"rules": {
		"open": {".read": true},
		"timed": {".read": "now > %d"},
		"given": {".read": "root.child('given-to').val() === 'all'"},
		"ruled": {".read": RULED}}}`, opens)
	operator := func(method, target, body string) {
		c.must(t, request{method: method, target: target + "?auth=" + secret, body: body})
	}
	operator("PUT", "/.settings/rules.json", strings.Replace(rules, "RULED", "false", 1))
	operator("PUT", "/ruled.json", `"hidden"`)
	operator("PUT", "/.settings/rules.json", strings.Replace(rules, "RULED", "true", 1))
	operator("PUT", "/given.json", `"hidden"`)
	operator("PUT", "/given-to.json", `"all"`)
	operator("PUT", "/timed.json", `"hidden"`)
	locations := []string{"timed", "given", "ruled"}
	for _, at := range locations {
		operator("PUT", "/"+at+".json", `"shown"`)
	}
	for deadline := time.Now().Add(patience); ; {
		if a, _, err := c.send(request{method: "GET", target: "/timed.json"}); err == nil && a.status == http.StatusOK {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the location does not open: %d %s, %v", a.status, a.body, err)
		}
	}
	var epoch string
	var last int
	first := c.firstFrame(t, "/open.json?resume=true", "")
	if _, err := fmt.Sscanf(strings.Replace(first, "-", " ", 1), "id: %s %d", &epoch, &last); err != nil {
		t.Fatalf("the first frame is %q: %v", first, err)
	}
	for _, at := range locations {
		operator("PUT", "/"+at+".json", `"shown"`) // so that there is something to tell, whatever the id
		for position := range last + 1 {
			frame := c.firstFrame(t, "/"+at+".json?resume=true", fmt.Sprint(epoch, "-", position))
			if !strings.Contains(frame, `"data":"shown"`) {
				t.Errorf("/%s: after a forged id at position %d of %d comes %q", at, position, last, frame)
			}
		}
	}
}

// firstFrame opens a stream after an id and returns its first event.
func (c *client) firstFrame(t *testing.T, target, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := request{method: "GET", target: target, header: []string{"Accept", "text/event-stream", "Last-Event-ID", id}}.build(ctx, c.base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var frame strings.Builder
	for lines := bufio.NewScanner(got.Body); lines.Scan() && lines.Text() != ""; {
		frame.WriteString(lines.Text() + "\n")
	}
	return frame.String()
}
