//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// streamTargets are what u watches; each can be made to show a marker, by which
// the end of a comparison is known.
var streamTargets = []struct{ path, query string }{
	{"/open", ""}, {"/open", "&format=export"}, {"/mine/u", ""}, {"/open/a", ""}, {"/part/one/shown", ""},
	{"/open", "&resume=true"}, {"/open", "&orderBy=%22$key%22&limitToLast=3"}, {"/open", "&orderBy=%22n%22&limitToLast=2"},
	{"/mine/u", "&orderBy=%22n%22&startAt=1"},
}

// eventID is the id of an event, which is a known leak.
var eventID = regexp.MustCompile(`(?m)^id: [0-9]+-[0-9]+$`)

// watch opens a stream of u at both, has u and the operator write, and compares
// the events.
func (w *twins) watch(t *testing.T, count int) {
	t.Helper()
	for range count {
		if len(w.differences) > 10 {
			return
		}
		w.streams++
		at := streamTargets[w.rng.IntN(len(streamTargets))]
		r := request{method: "GET", target: at.path + ".json?auth=" + w.token + at.query, header: []string{"Accept", "text/event-stream"}}
		marker := fmt.Sprintf("end-%06d", w.streams)
		var events [2]string
		var errs [2]error
		var opened, watching sync.WaitGroup
		opened.Add(2)
		for side, c := range []*client{w.first, w.second} {
			watching.Go(func() { events[side], errs[side] = c.watch(r, marker, sync.OnceFunc(opened.Done)) })
		}
		opened.Wait()
		w.differ(t, 5)
		for range 10 {
			q := randomQuestion(w.rng, w.token)
			if q.method == "PUT" || q.method == "PATCH" || q.method == "DELETE" {
				w.compareQuietly(q)
			}
		}
		// An object sorts behind all leaves, and this key behind all others, so that
		// the marker is in every window.
		body := fmt.Sprintf(`{"n":{"m":%q}}`, marker)
		end := request{method: "PUT", target: at.path + "/~~~" + marker + ".json?auth=" + url.QueryEscape(secret), body: body}
		w.compareQuietly(end)
		watching.Wait()
		if errs[0] != nil || errs[1] != nil {
			w.differences = append(w.differences, fmt.Sprintf("%s: %v, %v\n%s\n%s", r, errs[0], errs[1], events[0], events[1]))
		} else if eventID.ReplaceAllString(events[0], "id: *") != eventID.ReplaceAllString(events[1], "id: *") {
			w.differences = append(w.differences, fmt.Sprintf("%s tells different events:\n%s\n%s", r, events[0], events[1]))
		}
	}
}

func (w *twins) compareQuietly(r request) {
	w.requests++
	if difference := w.compare(r); difference != "" {
		w.differences = append(w.differences, difference)
	}
}

// watch returns all events until one that holds a marker, but for keep-alives. It
// calls opened when the first event is there, and in any case.
func (c *client) watch(r request, marker string, opened func()) (events string, err error) {
	defer opened()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := r.build(ctx, c.base)
	if err != nil {
		return "", err
	}
	got, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return "", fmt.Errorf("a stream is answered %d", got.StatusCode)
	}
	event, in := "", bufio.NewReader(got.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return events, fmt.Errorf("no marker came until %s: %w", time.Now().Format(time.TimeOnly), err)
		}
		event += line
		if strings.Contains(line, marker) {
			return events + event, nil
		}
		if line != "\n" {
			continue
		}
		opened()
		if event != "event: keep-alive\ndata: null\n\n" { // they come only when the machine is slow
			events += event
		}
		event = ""
	}
}
