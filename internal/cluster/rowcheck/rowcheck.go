// Package rowcheck compares the rows of all nodes of a cluster, once a week, in the background.
//
// The log proves that all nodes have applied the same records; it does not prove that their rows are the same after it. So the home of a shard appends
// a check record now and then ([Checker.Run]), and every node that applies it takes a view at that very record ([Checker.Take]) and works out
// a digest of the rows, at the pace of the scrub. The digests stand side by side in a note of the cluster. A node whose digest is another than that of most has
// rows that no record has made: [Checker.Problems] names it.
package rowcheck

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

const (
	// DefaultEvery is the time between two checks of a shard, and DefaultLook how often a node looks whether one is due.
	DefaultEvery = 7 * 24 * time.Hour
	DefaultLook  = 10 * time.Minute
	// longest is how long one may take: meanwhile the store keeps what its view shows.
	longest = 6 * time.Hour
	// tries is how often a digest is told again that another node was faster with.
	tries = 16
)

// Notes keep what all nodes have alike: see [databases.Notes].
type Notes interface {
	Local(name string) ([]byte, error)
	Get(ctx context.Context, name string) ([]byte, error)
	Swap(ctx context.Context, name string, was, now []byte) error
}

// Options say what a checker works with.
type Options struct {
	Notes Notes
	// Self is the address of this node, Nodes are those of all.
	Self  string
	Nodes func() []string
	// Copied says that this node has begun again with a copy of another's rows: what was found out about its former ones is over.
	Copied bool
	// Ask appends a check record to a shard, if this node is its home.
	Ask func(ctx context.Context, shard int) error
	// BytesPerSecond is how much is read in a second; 0 for no checks.
	BytesPerSecond int64
	// Every and Look are DefaultEvery and DefaultLook if they are 0.
	Every, Look time.Duration
	Now         func() time.Time
	Logger      *slog.Logger
}

// A Checker compares the rows of this node with those of the others.
type Checker struct {
	o     Options
	tasks chan task
	asked [shard.Count]time.Time // when this node has asked for a check; Run's alone
}

// A task is a shard at a check record.
type task struct {
	shard  int
	number uint64
	view   *store.View
	ids    []store.ID
}

// result is the note of a shard.
type result struct {
	Number uint64 `json:"number"` // of the check record
	Millis int64  `json:"millis"` // when the first node was done
	// Digests are those of the rows, by the address of the node.
	Digests map[string]string `json:"digests"`
}

// New returns a checker.
func New(o Options) *Checker {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Look == 0 {
		o.Look = DefaultLook
	}
	return &Checker{o: o, tasks: make(chan task, shard.Count)}
}

// NoteOf is the name of the note of a shard.
func NoteOf(s int) string { return fmt.Sprintf("check/%02d", s) }

// Take takes a shard as it is after a check record: the newest view of the store shows that record, and none after it. It does not wait. What there is no room for is left out:
// the next check comes.
func (c *Checker) Take(s int, number uint64, st *store.Store, ids []store.ID) {
	if c.o.BytesPerSecond <= 0 {
		return
	}
	t := task{s, number, st.View(), ids}
	select {
	case c.tasks <- t:
	default:
		t.view.Release()
	}
}

// Run asks for checks and makes them, until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	defer func() {
		for len(c.tasks) > 0 {
			(<-c.tasks).view.Release()
		}
	}()
	look := time.NewTicker(c.o.Look)
	defer look.Stop()
	if c.o.Copied {
		c.forget(ctx)
	}
	for {
		select {
		case t := <-c.tasks:
			c.check(ctx, t)
		case <-look.C:
			c.ask(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// forget takes back what this node has told of rows that it has no more.
func (c *Checker) forget(ctx context.Context) {
	for s := range shard.Count {
		for range tries {
			r, was, err := c.read(c.o.Notes.Get(ctx, NoteOf(s)))
			if err != nil || r.Digests[c.o.Self] == "" {
				break
			}
			delete(r.Digests, c.o.Self)
			now, err := json.Marshal(r)
			if err != nil || !errors.Is(c.o.Notes.Swap(ctx, NoteOf(s), was, now), databases.ErrChanged) {
				break
			}
		}
	}
}

// ask appends a check record to one shard that is due, if this node is the home of one.
func (c *Checker) ask(ctx context.Context) {
	if c.o.BytesPerSecond <= 0 {
		return
	}
	now := c.o.Now()
	for s := range shard.Count {
		if now.Sub(c.asked[s]).Abs() < c.o.Every || now.Sub(c.last(s)).Abs() < c.o.Every {
			continue
		}
		if err := c.o.Ask(ctx, s); err != nil {
			continue // another node is the home, or there is none now
		}
		c.asked[s] = now
		return
	}
}

// last returns when the last check of a shard was made.
func (c *Checker) last(s int) time.Time {
	r, _, err := c.read(c.o.Notes.Local(NoteOf(s)))
	if err != nil || r.Number == 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.Millis)
}

func (*Checker) read(note []byte, err error) (r result, was []byte, _ error) {
	if err != nil || note == nil {
		return r, nil, err
	}
	return r, note, json.Unmarshal(note, &r)
}

// check works out the digest of a task, and tells it to the others.
func (c *Checker) check(ctx context.Context, t task) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if r, _, err := c.read(c.o.Notes.Local(NoteOf(t.shard))); err == nil && r.Number > t.number {
		t.view.Release() // this node was away, and a later check is under way
		return
	}
	digest, err := c.digest(ctx, t)
	t.view.Release()
	if err == nil {
		err = c.tell(ctx, t, digest)
	}
	if err != nil && ctx.Err() == nil {
		c.o.Logger.Warn("the rows of a shard were not compared with those of other nodes", "shard", t.shard, "record", t.number, "error", err)
	}
}

// digest reads all rows of a shard that the nodes have alike.
func (c *Checker) digest(ctx context.Context, t task) (string, error) {
	sum := sha256.New()
	slices.Sort(t.ids)
	for _, id := range t.ids { // one without rows leaves no trace: not all nodes know of it yet
		err := store.DigestRows(t.view, id, sum, func(bytes int) error {
			return pause.For(ctx, time.Duration(float64(bytes)/float64(c.o.BytesPerSecond)*float64(time.Second)))
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// tell puts a digest beside those of the others.
func (c *Checker) tell(ctx context.Context, t task, digest string) error {
	for range tries {
		r, was, err := c.read(c.o.Notes.Get(ctx, NoteOf(t.shard)))
		if err != nil || r.Number > t.number {
			return err // a later check is under way
		}
		if r.Number < t.number {
			r = result{Number: t.number, Millis: c.o.Now().UnixMilli(), Digests: map[string]string{}}
		}
		r.Digests[c.o.Self] = digest
		now, err := json.Marshal(r)
		if err != nil {
			return err
		}
		err = c.o.Notes.Swap(ctx, NoteOf(t.shard), was, now)
		if err == nil {
			c.o.Logger.Debug("the rows of a shard were compared", "shard", t.shard, "record", t.number, "digest", digest, "nodes", len(r.Digests))
			c.complain(t.shard, r)
			return nil
		}
		if !errors.Is(err, databases.ErrChanged) && fault.KindOf(err) != fault.Unknown {
			return err
		}
	}
	return databases.ErrChanged
}

// complain logs that nodes differ, where the last of them is done.
func (c *Checker) complain(s int, r result) {
	if odd := oddNodes(r.Digests); len(odd) > 0 {
		c.o.Logger.Error("the rows of nodes differ: the log did not make them so; stop the node, move its data directory away, and start it", "shard", s, "record", r.Number, "nodes", odd)
	}
}

// oddNodes are the nodes whose digest is not that of most; all of them if no digest is that of most.
func oddNodes(digests map[string]string) (odd []string) {
	count := map[string]int{}
	for _, d := range digests {
		count[d]++
	}
	for _, node := range slices.Sorted(maps.Keys(digests)) {
		if 2*count[digests[node]] <= len(digests) {
			odd = append(odd, node)
		}
	}
	return odd
}

// Problems says which nodes have other rows than most, as of the last checks.
func (c *Checker) Problems() (problems []string) {
	members := c.o.Nodes()
	seen := map[string]bool{}
	for s := range shard.Count {
		r, _, err := c.read(c.o.Notes.Local(NoteOf(s)))
		if err != nil {
			continue
		}
		maps.DeleteFunc(r.Digests, func(node, _ string) bool { return !slices.Contains(members, node) })
		for _, node := range oddNodes(r.Digests) {
			if !seen[node] {
				seen[node] = true
				problems = append(problems, fmt.Sprintf("the rows of %s differ from those of other nodes, as of record %d of shard %d: stop it, move its data directory away, and start it", node, r.Number, s))
			}
		}
	}
	return problems
}
