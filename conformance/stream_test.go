package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A stream is an open stream, of which a goroutine reads frame after frame.
type stream struct {
	target string
	close  func()
	frames chan string // each with its empty line; what is left of one at the end
	ended  error       // how it ended; to be read when frames is closed
	isOver bool
	// isRare says that keep-alives come only when a test is slow, and are skipped.
	isRare bool
}

const keepAlive = "event: keep-alive\ndata: null\n\n"

// open opens a stream, or compares the answer that came instead.
func (r *runner) open(s step, kept texts) string {
	if !slices.ContainsFunc(s.header, func(f field) bool { return strings.EqualFold(f.name, "Accept") }) {
		s.header = append(slices.Clone(s.header), field{"Accept", "text/event-stream"})
	}
	req, err := r.request(s, kept)
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(patience, cancel)
	answer, err := r.roundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return err.Error()
	}
	late.Stop()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		defer cancel()
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		return s.want.compare(response{answer.StatusCode, answer.Header, string(body)}, kept)
	}
	opened := &stream{target: req.URL.RequestURI(), frames: make(chan string, 1000), isRare: r.config.KeepAlive == 0}
	done := make(chan struct{})
	opened.close = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		defer answer.Body.Close()
		opened.read(ctx, answer.Body)
	}()
	r.streams[s.stream] = opened
	want := s.want
	want.header = append(slices.Clone(want.header), field{"Content-Type", "text/event-stream; charset=utf-8"})
	return want.compare(response{answer.StatusCode, answer.Header, ""}, kept)
}

// read splits what comes at empty lines.
func (s *stream) read(ctx context.Context, body io.Reader) {
	defer close(s.frames)
	in := bufio.NewReader(body)
	var frame bytes.Buffer
	for {
		line, err := in.ReadBytes('\n')
		frame.Write(line)
		if err != nil && frame.Len() == 0 {
			s.ended = err
			return
		}
		if err != nil || string(line) == "\n" {
			select {
			case s.frames <- frame.String():
				frame.Reset()
			case <-ctx.Done():
				return
			}
		}
	}
}

// patience is how long anything is waited for that should come at once. It is no
// measure of speed: the machine may be busy.
const patience = 2 * time.Minute

// next returns the next frame; ok is false if the stream has ended.
func (s *stream) next() (frame string, ok bool, problem string) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case frame, ok = <-s.frames:
			if s.isRare && frame == keepAlive {
				continue
			}
			s.isOver = !ok
			return frame, ok, ""
		case <-timer.C:
			return "", false, fmt.Sprintf("nothing came in %v", patience)
		}
	}
}

// expect compares the next frame.
func (s *stream) expect(want string, kept texts) string {
	got, ok, problem := s.next()
	switch {
	case problem != "":
		return fmt.Sprintf("%s, want %s", problem, show(want))
	case !ok:
		return fmt.Sprintf("the stream has ended with %v, want %s", s.ended, show(want))
	}
	return kept.match(want, got)
}

// expectLater compares the next frame that is not a keep-alive.
func (s *stream) expectLater(want string, kept texts) string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		got, ok, problem := s.next()
		switch {
		case problem != "" || !ok:
			return fmt.Sprintf("the stream has ended, or %s, want %s", problem, show(want))
		case got != keepAlive:
			return kept.match(want, got)
		}
	}
	return fmt.Sprintf("nothing but keep-alives came in %v, want %s", patience, show(want))
}

// expectEnd waits for the end, which must be an ordinary one.
func (s *stream) expectEnd() string {
	got, ok, problem := s.next()
	switch {
	case problem != "":
		return problem + ", want the end"
	case ok:
		return fmt.Sprintf("got  %s\nwant the end", show(got))
	case !errors.Is(s.ended, io.EOF):
		return fmt.Sprintf("the stream ended with: %v", s.ended)
	}
	return ""
}

func (r *runner) closeStreams() {
	for _, s := range r.streams {
		if s != nil {
			s.close()
		}
	}
	r.streams = nil
}

// checkRest makes sure that no stream has more to tell than was expected: one
// write replaces everything, and it must be the next event of each. A filtered
// stream may not see it, and is left out; files say themselves what comes last.
func (r *runner) checkRest() string {
	tree := map[string]any{}
	var names []string
	for name, s := range r.streams {
		if s == nil || s.isOver || strings.Contains(s.target, "orderBy=") || strings.Contains(s.target, ".priority") || strings.Contains(s.target, "ns=") {
			continue
		}
		names = append(names, name)
		s.mark(tree)
	}
	if len(names) == 0 {
		return ""
	}
	body, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	if _, err := r.mustSend(step{method: "PUT", target: "/.json?auth=<secret>", body: string(body)}, "write a marker"); err != nil {
		return err.Error()
	}
	for _, name := range names {
		if problem := r.expectMark(r.streams[name]); problem != "" {
			return fmt.Sprintf("the stream %s has more to tell: %s", name, problem)
		}
	}
	return ""
}

// path returns the location of the stream, as it stands in the URL.
func (s *stream) path() string {
	path, _, _ := strings.Cut(s.target, ".json")
	return strings.Trim(path, "/")
}

// mark puts a marker into a tree, where the stream sees it.
func (s *stream) mark(tree map[string]any) {
	for key := range strings.SplitSeq(s.path(), "/") {
		if key == "" {
			continue
		}
		key, _ = url.PathUnescape(key) // the server took it
		child, ok := tree[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			tree[key] = child
		}
		tree = child
	}
	tree["marker"] = true
}

// expectMark waits for the event of the marker.
func (r *runner) expectMark(s *stream) string {
	target := "/" + s.path() + ".json?auth=<secret>"
	if strings.Contains(s.target, "format=export") {
		target += "&format=export"
	}
	data, err := r.mustSend(step{method: "GET", target: target}, "read the marker")
	if err != nil {
		return err.Error()
	}
	want := `event: put` + "\n" + `data: {"path":"/","data":` + data + "}\n\n"
	if strings.Contains(s.target, "resume=true") {
		want = "id: <*>\n" + want
	}
	return s.expect(want, texts{})
}
