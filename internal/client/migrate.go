package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/pause"
)

// A Migration copies a node from one server to another and keeps the copy up to
// date until the users of the first have moved.
//
// The stream of the source says only where something changed; what is there is
// read again, with its priorities, and written. So it does not matter that a
// change is also in what was copied before, or that several are read as one: when
// the source rests and all that is stale was copied, both are equal. That is
// verified by comparing them.
type Migration struct {
	From, To *Client
	Path     string
	// Replace allows that there is data at the target; Confirm, if not nil, is
	// asked before it is deleted.
	Replace bool
	Confirm func() error
	// Once ends the migration when the copy was verified, instead of following
	// the source until ctx ends.
	Once bool
	// Quiet is how long the source must rest before the copy is verified; 0 for
	// DefaultQuiet.
	Quiet time.Duration
	// Tell is told what happens; Lag, about once a second, how far the copy is
	// behind. Both are called from several goroutines.
	Tell func(MigrationEvent)
	Lag  func(Lag)
}

// DefaultQuiet is how long a source must rest before the copy is verified.
const DefaultQuiet = 2 * time.Second

// A Lag is how far a copy is behind.
type Lag struct {
	Stale  int           `json:"stale"`   // paths that must be copied again
	Age    time.Duration `json:"age_ns"`  // of the oldest change among them
	Copied int64         `json:"copied"`  // paths so far
	Bytes  int64         `json:"bytes"`   // of text so far
	Events int64         `json:"changes"` // that the source told of
}

// A MigrationEvent is a step of a migration.
type MigrationEvent struct {
	Step string `json:"step"` // connected, lost, copying, copied, verifying, differs, verified
	Text string `json:"text"` // for people
	Lag  Lag    `json:"lag"`
	Safe bool   `json:"safe"` // users can move
}

const (
	// migrationEvent bounds an event of the source, of which only the path
	// matters: of a longer one that is all that is known.
	migrationEvent = 1 << 20
	// maxFailures bounds failures in a row.
	maxFailures = 8
	// maxRepairs bounds how often differences are copied again.
	maxRepairs = 3
)

// ErrDiffers says that a copy is not equal to its source though nothing changed.
var ErrDiffers = errors.New("the copy differs from its source")

// ErrMoved says that others write to the copy.
var ErrMoved = errors.New("another client has written to the target since both sides were equal: its users have moved, and nothing is copied to it any more")

// Run copies and follows. It returns nil if ctx ends while the copy is verified.
func (m Migration) Run(ctx context.Context) error {
	if m.Quiet == 0 {
		m.Quiet = DefaultQuiet
	}
	if m.From.address.same(m.To.address) {
		return usage("--from and --url are the same database: a copy onto itself would never end, or delete it")
	}
	if err := m.makeRoom(ctx); err != nil {
		return err
	}
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &migrating{Migration: m, stale: newStale(m.From.now), comparison: newComparison()}
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		if err := r.follow(following); err != nil {
			stop(err)
		}
	})
	err := r.copyAll(following)
	stop(err)
	if r.verified && errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrMoved) && r.stale.lag().Events > 0 { // something may have been written
		return &PartialError{inWords(err), "the copy was not verified: run the command again with --replace to start again"}
	}
	return inWords(err)
}

func (m Migration) makeRoom(ctx context.Context) error {
	empty, err := m.To.IsEmpty(ctx, m.Path)
	if err != nil || empty {
		return err
	}
	if !m.Replace {
		return usage("there is data at %s of %s already: --replace deletes it", display(m.Path), m.To)
	}
	if m.Confirm != nil {
		return m.Confirm()
	}
	return nil
}

func display(path string) string { return "/" + strings.Trim(path, "/") }

// migrating is a migration that runs.
type migrating struct {
	Migration
	stale      *stale
	comparison comparison
	copied     int64
	bytes      int64
	repairs    int
	checked    int64 // the events that were known when the copy was last compared
	verified   bool
	// equal is the sum of both sides when they were verified last, and equalAt how many paths were copied by then.
	equal   *sum
	equalAt int64
}

// follow notes what changes at the source.
func (r *migrating) follow(ctx context.Context) error {
	w := Watch{
		Path: r.Path, MaxEvent: migrationEvent,
		Connected: func() { r.tell("connected", "following "+r.From.String(), false) },
		Lost: func(err error, wait time.Duration) {
			r.tell("lost", fmt.Sprintf("%v; again in %s", err, wait.Round(time.Millisecond)), false)
		},
	}
	return r.From.Watch(ctx, w, func(e Event) error {
		if e.Name != EventPut && e.Name != EventPatch {
			return nil
		}
		if e.Name == EventPut || e.Truncated {
			r.stale.add(e.Path)
			return nil
		}
		keys, err := keysOf(e.Data)
		if err != nil {
			return err
		}
		if len(keys) == 0 { // only the priority of a large node has changed
			r.stale.add(e.Path)
		}
		for _, key := range keys {
			r.stale.add(join(strings.TrimSuffix(e.Path, "/"), key))
		}
		return nil
	})
}

// keysOf returns the keys of a JSON object.
func keysOf(text []byte) ([]string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, badData("a patch event has data that is not an object")
	}
	var keys []string
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, badData("a patch event is malformed: %v", err)
		}
		keys = append(keys, name.String())
		if err := d.SkipValue(); err != nil {
			return nil, badData("a patch event is malformed: %v", err)
		}
	}
	return keys, nil
}

// copyAll copies what is stale, and verifies the copy when nothing is.
func (r *migrating) copyAll(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	failures := 0
	for {
		if path, ok := r.stale.next(); ok {
			r.verified = false
			err := r.checkMoved(ctx, path)
			if err == nil {
				err = r.copyOne(ctx, path)
			}
			if err == nil {
				failures = 0
				continue
			}
			r.stale.add(path)
			if failures++; failures >= maxFailures || !isPassing(err) || ctx.Err() != nil {
				return cause(ctx, err)
			}
			r.tell("lost", err.Error()+"; trying again", false)
			if err := pause.For(ctx, r.To.retry.wait(failures)); err != nil {
				return err
			}
			continue
		}
		done, err := r.verify(ctx)
		if err != nil || done {
			return cause(ctx, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.stale.added:
		case <-ticker.C:
		}
		if r.Lag != nil {
			r.Lag(r.lag())
		}
	}
}

// cause returns why ctx ended, if it did, instead of what came of that.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); err != nil && c != nil {
		return c
	}
	return err
}

// isPassing reports whether an error may be gone the next time.
func isPassing(err error) bool {
	_, broken := errors.AsType[*ConnectionError](err)
	status, answered := errors.AsType[*StatusError](err)
	return broken || answered && status.Status >= 500
}

// checkMoved fails if all is to be copied again, though nothing was since both sides were equal, and the target is another by now. Sources
// that do not know what a stream has missed begin again with all, so a connection that breaks after users have moved would have
// what they wrote since deleted.
func (r *migrating) checkMoved(ctx context.Context, path string) error {
	if path != "/" || r.equal == nil || r.copied != r.equalAt {
		return nil
	}
	there, err := r.comparison.digest(ctx, r.To, display(r.Path))
	if err == nil && there.all != *r.equal {
		err = ErrMoved
	}
	return err
}

// smallCopy is the size up to which a node is copied by one request.
const smallCopy = 1 << 20

// copyOne reads a path of the source and writes it to the target.
func (r *migrating) copyOne(ctx context.Context, path string) error {
	full := strings.TrimSuffix(r.Path, "/") + "/" + strings.Trim(path, "/")
	at, err := Location(full)
	if err != nil {
		return err
	}
	resp, err := r.From.Do(ctx, Request{Method: http.MethodGet, Path: at, Query: url.Values{"format": {"export"}}, Repeatable: true})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	start, err := io.ReadAll(io.LimitReader(resp.Body, smallCopy))
	if err != nil {
		return err
	}
	if len(start) < smallCopy {
		_, err := r.To.Bytes(ctx, Request{
			Method: http.MethodPut, Path: at, Query: url.Values{"print": {"silent"}},
			Header: http.Header{"Connection": {"keep-alive"}}, Body: bytes.NewReader(start), Repeatable: true,
		})
		r.count(err, int64(len(start)))
		return err
	}
	r.tell("copying", "copying "+display(full), false)
	before := r.bytes
	report, err := r.To.Import(ctx, Import{
		Input: io.MultiReader(bytes.NewReader(start), resp.Body), Path: full, Mode: ModeReplace,
		Done: func(n int64) {
			r.bytes = before + n
			if r.Lag != nil {
				r.Lag(r.lag())
			}
		},
	})
	r.bytes = before
	r.count(err, report.Bytes)
	if partial, ok := errors.AsType[*PartialError](err); ok {
		err = partial.err // this import is not one that the user could repeat
	}
	if err != nil {
		return r.From.broken(err)
	}
	r.tell("copied", fmt.Sprintf("copied %s, %d bytes", display(full), report.Bytes), false)
	return nil
}

// broken returns the error of a connection where a text that it carried was cut
// off.
func (c *Client) broken(err error) error {
	if bad, ok := errors.AsType[*DataError](err); ok && strings.Contains(bad.text, "cut off") {
		return &ConnectionError{Server: c.address.url.String(), Sent: true, source: c.source, err: io.ErrUnexpectedEOF}
	}
	return err
}

func (r *migrating) count(err error, bytes int64) {
	if err == nil {
		r.copied++
		r.bytes += bytes
	}
}

// verify compares both sides when the source has rested since it last did.
func (r *migrating) verify(ctx context.Context) (done bool, err error) {
	events, rested := r.stale.rest()
	if events == 0 || events == r.checked || rested < r.Quiet {
		return false, nil
	}
	r.tell("verifying", "comparing both sides", false)
	equal, differ, err := r.comparison.compare(ctx, r.From, r.To, display(r.Path))
	if err != nil && isPassing(err) && ctx.Err() == nil {
		r.tell("lost", err.Error()+"; trying again", false)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if now, _ := r.stale.rest(); now != events {
		return false, nil // it changed meanwhile, which proves nothing
	}
	if len(differ) == 0 {
		r.checked, r.repairs, r.verified = events, 0, true
		r.equal, r.equalAt = &equal, r.copied
		r.tell("verified", "both sides are equal: it is safe to cut over. Stop the writers of the source, wait until this line comes again or the lag is 0, stop this command, and point them to the target", true)
		return r.Once, nil
	}
	if r.repairs++; r.repairs > maxRepairs {
		return false, fmt.Errorf("%w at %s: either another client writes to the target, or its rules delete there what has expired in the source (.expireOn): set such rules when users have moved",
			ErrDiffers, strings.Join(differ[:min(len(differ), 5)], ", "))
	}
	text := differ[0] + " differs and is copied again"
	if len(differ) > 1 {
		text = fmt.Sprintf("%d paths differ and are copied again, the first is %s", len(differ), differ[0])
	}
	r.tell("differs", text, false)
	for _, path := range differ {
		r.stale.add(strings.TrimPrefix(path, strings.TrimSuffix(display(r.Path), "/")))
	}
	return false, nil
}

func (r *migrating) lag() Lag {
	l := r.stale.lag()
	l.Copied, l.Bytes = r.copied, r.bytes
	return l
}

func (r *migrating) tell(step, text string, safe bool) {
	if r.Tell == nil {
		return
	}
	l := r.stale.lag()
	r.Tell(MigrationEvent{Step: step, Text: text, Lag: l, Safe: safe})
}
