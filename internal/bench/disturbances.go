package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A disturbance is something large that a server is asked to do.
type disturbance struct {
	name, about string
	small       bool // it needs the small children
	run         func(ctx context.Context, s *side) error
	// before, if set, is done before requests are measured, and after when they were, also if it failed.
	before func(ctx context.Context, s *side) error
	after  func(ctx context.Context, s *side) error
	// often says that 1,000 writes a second are made, of orders, in place of 400 of users.
	often bool
}

func (st Stalls) disturbances() []disturbance {
	return append(st.large(), st.beside()...)
}

// large are disturbances that somebody asks for.
func (st Stalls) large() []disturbance {
	return []disturbance{
		{name: "calm", about: "nothing else", run: func(ctx context.Context, _ *side) error { return pause.For(ctx, st.Calm) }},
		{name: "index", about: fmt.Sprintf("an index is built over %d children", st.Leaves), small: true, run: buildIndex},
		{name: "backup", about: "a backup is made", run: makeBackup},
		{name: "export", about: "a large export goes to a slow client", run: func(ctx context.Context, s *side) error {
			return exportSlowly(ctx, s, st.Calm)
		}},
		{name: "rules", about: "a user sends PATCHes whose rules look at a string of 10 MiB 1500 times each, and leaves", before: costlyRules,
			run: func(ctx context.Context, s *side) error { return sendAndLeave(ctx, s, st.Calm) }},
		{name: "compact", about: fmt.Sprintf("compactions catch up with two PUTs of %d bytes", st.BodyBytes),
			before: func(ctx context.Context, s *side) error { return s.pileUp(ctx, st.BodyBytes/userBytes) },
			run:    func(ctx context.Context, s *side) error { return s.merged(ctx) }},
		{name: "put", about: fmt.Sprintf("a PUT of %d bytes comes in", st.BodyBytes), run: func(ctx context.Context, s *side) error {
			return s.put(ctx, "/large.json?print=silent", appendUsers(nil, 0, max(1, st.BodyBytes/userBytes)))
		}},
		{name: "delete", about: fmt.Sprintf("%d leaves are deleted", st.Leaves), run: func(ctx context.Context, s *side) error {
			return s.send(ctx, "DELETE", "/big.json", nil)
		}},
	}
}

// costlyRules sets rules that look at a string for each post, and makes it long.
func costlyRules(ctx context.Context, s *side) error {
	const rules = `{"rules":{".read":true,".write":true,"posts":{"$p":{".validate":"root.child('profiles/eve/name').isString()"}}}}`
	name := append(append([]byte{'"'}, bytes.Repeat([]byte("Eve "), 10<<18)...), '"')
	if err := s.put(ctx, "/profiles/eve/name.json?print=silent", name); err != nil {
		return err
	}
	return s.setRules(ctx, rules)
}

// sendAndLeave sends a PATCH of 1,500 posts every 50 ms for a while, and never waits for
// an answer. In the end all may do everything again.
func sendAndLeave(ctx context.Context, s *side, d time.Duration) error {
	body := []byte(`{"p0":1`)
	for i := range 1499 {
		body = fmt.Appendf(body, `,"p%d":1`, i+1)
	}
	body = append(body, '}')
	for deadline := now().Add(d); now().Before(deadline); {
		c, err := s.open(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c, "PATCH /posts.json HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", s.addr, s.credentialOf(0).headers, len(body), body)
		_ = c.Close()
		if err != nil {
			return cause(ctx, err)
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return s.setRules(ctx, openRules)
}

// userBytes is about what a user takes in an object of users.
const userBytes = 305

// fillSmall writes children that an index can be built over.
func (s *side) fillSmall(ctx context.Context, n int) error {
	const atOnce = 5000
	for from := 0; from < n; from += atOnce {
		body := []byte{'{'}
		for i := from; i < min(n, from+atOnce); i++ {
			if i > from {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `"child%07d":{"score":%d}`, i, pick(i, 100_000_000))
		}
		if err := s.send(ctx, "PATCH", "/small.json?print=silent", append(body, '}')); err != nil {
			return err
		}
	}
	return nil
}

// pileUp leaves a server much to merge: two nodes of so many users, one in the place
// of the other. Each is flushed as a whole after its answer; from small writes
// nothing piles up, since compactions go on beside them.
func (s *side) pileUp(ctx context.Context, count int) error {
	var body []byte
	for first := range 2 {
		body = appendUsers(body[:0], first, first+max(1, count))
		if err := s.put(ctx, "/pile.json?print=silent", body); err != nil {
			return err
		}
	}
	return nil
}

// How often, and for how long, a server must have merged nothing: a compaction begins a
// moment after another. What was flushed waits some seconds for more; some levels never lose all of their debt.
const (
	calmEnough = 6
	calmTime   = calmEnough * 50 * time.Millisecond
	mostPolls  = 10 * time.Second / (calmTime / calmEnough)
)

// merged returns when a server has merged what it has flushed.
func (s *side) merged(ctx context.Context) error {
	polls := time.Duration(0)
	for calm := 0; calm < calmEnough; polls++ {
		running, err := s.process.Metric(ctx, "livetree_pebble_compactions_running")
		if err != nil {
			return err
		}
		left, err := s.process.Metric(ctx, debt)
		if err != nil {
			return err
		}
		if calm++; running > 0 || left > 0 && polls < mostPolls {
			calm = 0
		}
		if err := pause.For(ctx, calmTime/calmEnough); err != nil {
			return err
		}
	}
	return nil
}

// buildIndex asks for an index, and returns when it is used.
func buildIndex(ctx context.Context, s *side) error {
	if err := s.setRules(ctx, `{"rules":{".read":true,".write":true,"small":{".indexOn":["score"]}}}`); err != nil {
		return err
	}
	return s.answered(ctx, "/small.json?orderBy=%22score%22&limitToLast=1")
}

// answered returns when a query is answered, because the index for it is built.
func (s *side) answered(ctx context.Context, target string) error {
	late := time.After(10 * time.Minute)
	for {
		err := s.send(ctx, "GET", target, nil)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-late:
			return fmt.Errorf("the index is not built: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// backupDir is where a server makes its backup.
func backupDir(s *side) string { return filepath.Join(filepath.Dir(s.dir), "backup") }

func makeBackup(ctx context.Context, s *side) error {
	body, err := json.Marshal(map[string]string{"target": backupDir(s)})
	if err != nil {
		return err
	}
	_, err = s.process.Ask(ctx, http.MethodPost, s.process.Control+"/v1/backup", body)
	return err
}

// exportSlowly reads the whole tree a little at a time, and gives up after a while.
func exportSlowly(ctx context.Context, s *side, d time.Duration) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := fmt.Fprintf(c, "GET /.json HTTP/1.1\r\nHost: %s\r\n\r\n", s.addr); err != nil {
		return err
	}
	const sip = 64 << 10
	for deadline := now().Add(d); now().Before(deadline); {
		if n, err := io.CopyN(io.Discard, c.reader, sip); err != nil {
			if n > 0 && ctx.Err() == nil {
				return nil // the tree was small
			}
			return cause(ctx, err)
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
