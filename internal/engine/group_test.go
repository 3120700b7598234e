package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A replica is a store that is given the records of another, and nothing else.
type replica struct {
	*store.Store
	id store.ID
}

// newReplicaStore opens a store whose metadata is that of every other that it opens.
func newReplicaStore(t testing.TB, chunkBytes int) replica {
	t.Helper()
	s, err := store.Open("data", store.Options{
		FS: vfs.NewMem(), ChunkBytes: chunkBytes, PriorityRows: 3, StepChildren: 20, GapSteps: 2, BallastBytes: -1,
		Rand: bytes.NewReader(bytes.Repeat([]byte{7}, 40)),
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Create("db")
	if err != nil {
		t.Fatal(err)
	}
	return replica{s, id}
}

// take commits a record.
func (r replica) take(t testing.TB, record enginetest.Record) {
	parts := make([]store.RecordPart, len(record.Effects))
	for i, effect := range record.Effects {
		e, err := store.BatchOf(r.Store, r.id, bytes.Clone(effect))
		if err != nil {
			t.Error(err)
			return
		}
		parts[i].Batch = e.Batch
	}
	if err := store.CommitRecord(r.Store, parts, record.Applied); err != nil {
		t.Error(err)
	}
}

// rows returns all rows of the database.
func (r replica) rows(t testing.TB) string {
	t.Helper()
	reader := r.Live(r.id).Reader()
	var text strings.Builder
	for space := layout.SpaceData; space <= layout.SpaceRecord; space++ {
		it, err := reader.Space(space)
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			fmt.Fprintf(&text, "%x %x\n", it.Key(), it.Value())
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

const groupRules = `{"rules":{".read":true,".write":true,
	"list":{".indexOn":["n"%s]},
	"due":{"$d":{".expireOn":"at"}},
	"closed":{".write":"data.child('open').val() == true"}}}`

// A groupClient is one of several that write at the same time.
type groupClient struct {
	*testing.T
	number  int
	rng     *rand.Rand
	db      *engine.Database
	leaving *engine.Leaving
	expiry  *engine.Expiry // of one client

	counted, unknown int // of its own counter
}

// step does something.
func (c *groupClient) step() {
	at := fmt.Sprintf("list/k%d", c.rng.IntN(40))
	switch c.rng.IntN(14) {
	case 0, 1, 2:
		c.count()
	case 3:
		c.write("PUT", at, fmt.Sprintf(`{"n":%d,".priority":%d}`, c.rng.IntN(9), c.rng.IntN(3)))
	case 4:
		c.write("PUT", at, `null`)
	case 5:
		c.write("PUT", []string{"list", "list/k1", "due"}[c.rng.IntN(3)], `null`)
	case 6:
		c.write("PUT", "big", `{"text":"`+strings.Repeat("x", c.rng.IntN(3000))+`","`+fmt.Sprint(c.rng.IntN(9))+`":1}`)
	case 7:
		c.write("PUT", "closed/x", `1`)
	case 8:
		c.write("PUT", fmt.Sprintf("due/d%d", c.rng.IntN(9)), fmt.Sprintf(`{"at":%d}`, c.rng.IntN(5)))
	case 9:
		extra := []string{``, `,"m"`}[c.rng.IntN(2)]
		_, err := c.db.SetRules(c.Context(), fmt.Sprintf(groupRules, extra))
		c.expect(err)
	case 10:
		c.leave()
	case 11:
		c.hook()
	case 12:
		if c.expiry != nil {
			_, err := c.expiry.Step(c.Context(), func() bool { return true })
			c.expect(err)
		}
	case 13:
		c.expect(c.db.SetOption(c.Context(), "text", fmt.Sprint(c.rng.IntN(3))))
	}
}

// expect fails the test unless an error is one that a write may have here.
func (c *groupClient) expect(err error) {
	switch fault.KindOf(err) {
	case fault.Unknown, fault.Denied, fault.Unavailable, fault.Conflict, fault.NotFound, fault.TooLarge:
	default:
		if err != nil {
			c.Error(err)
		}
	}
}

func (c *groupClient) write(verb, at, body string) {
	req, err := enginetest.ParseRequest(verb + " /" + at + " " + body)
	if err != nil {
		c.Error(err)
		return
	}
	_, err = c.db.Write(c.Context(), req)
	c.expect(err)
}

// count increments the counter of the client.
func (c *groupClient) count() {
	w, err := put(path(c, fmt.Sprintf("counters/c%d", c.number)), `{".sv":{"increment":1}}`)
	if err != nil {
		c.Error(err)
		return
	}
	_, err = c.db.Write(c.Context(), engine.Request{Write: w, Who: admin})
	switch {
	case err == nil:
		c.counted++
	case fault.KindOf(err) == fault.Unknown:
		c.unknown++
	default:
		c.expect(err)
	}
}

// leave leaves something to be written, or makes it.
func (c *groupClient) leave() {
	if c.rng.IntN(4) == 0 {
		_, err := c.leaving.Run(c.Context())
		c.expect(err)
		c.leaving = c.db.NewLeaving()
		return
	}
	w, err := put(path(c, fmt.Sprintf("left/c%d/%d", c.number, c.rng.IntN(3))), `1`)
	if err != nil {
		c.Error(err)
		return
	}
	req := c.leaving.Later(w)
	req.Who = admin
	_, err = c.db.Write(c.Context(), req)
	c.expect(err)
}

// hook adds or removes a webhook, or saves how far it is.
func (c *groupClient) hook() {
	name := fmt.Sprintf("h%d", c.rng.IntN(2))
	switch c.rng.IntN(3) {
	case 0:
		pattern, err := hook.ParsePattern("/list/$k")
		if err != nil {
			c.Error(err)
			return
		}
		_, err = engine.AddHook(c.Context(), c.db, hook.Hook{Name: name, Pattern: pattern, URL: "https://example.com/", Events: hook.Create | hook.Update | hook.Delete})
		c.expect(err)
	case 1:
		_, err := engine.RemoveHook(c.Context(), c.db, name)
		c.expect(err)
	default:
		c.expect(engine.SaveHooks(c.Context(), c.db, []store.HookRow{{Hook: uint32(c.rng.IntN(3)), Progress: []byte("far")}}))
	}
}

// TestGroups has several clients write by a log that is late, refuses groups, and forgets to say what became of them. What
// was acknowledged is there once, what was refused is not; all rows fit together, and a store that was given the records
// alone has the same ones.
func TestGroups(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testGroups(t, seed)
		})
	}
}

func testGroups(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	limit := []int{-1, 24, 4096}[rng.IntN(3)]
	home, other := newReplicaStore(t, limit), newReplicaStore(t, limit)
	opts := engine.Options{Name: "db", Clock: state.NewClock(time.Now, rand.NewChaCha8([32]byte{1}), 0), Deadline: enginetest.Unhurried}
	if rng.IntN(2) == 0 {
		opts.Limits = enginetest.TinyLimits()
		opts.Limits.MaxQueued = 4096
	}
	chances := enginetest.Chances{Late: 3, Refuse: 4, Lose: 8, Seed: seed, Replay: func(r enginetest.Record) { other.take(t, r) }}
	db, err := enginetest.OpenBy(chances)(home.Store, home.id, opts)
	if err != nil {
		t.Fatal(err)
	}
	clients := make([]*groupClient, 4)
	var running sync.WaitGroup
	for i := range clients {
		c := &groupClient{T: t, number: i, rng: rand.New(rand.NewPCG(seed, uint64(i))), db: db, leaving: db.NewLeaving()}
		if clients[i] = c; i == 0 {
			c.expiry = engine.NewExpiry(db)
		}
		running.Go(func() {
			for range 50 {
				c.step()
			}
		})
	}
	running.Wait()
	for enginetest.WaitForIndexes(t.Context(), db) != nil { // some of its writes fail
		continue
	}
	checkGroups(t, db, clients)
	db.Close()
	if a, b := home.rows(t), other.rows(t); a != b {
		t.Errorf("the rows of the other store are others: %d bytes and %d", len(a), len(b))
	}
	if err := errors.Join(home.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}

func checkGroups(t *testing.T, db *engine.Database, clients []*groupClient) {
	v := db.View()
	defer v.Close()
	for _, c := range clients {
		leaf, _, err := v.Tree().Look(path(t, fmt.Sprintf("counters/c%d", c.number)))
		value := leaf.Float()
		if err != nil || int(value) < c.counted || int(value) > c.counted+c.unknown {
			t.Errorf("the counter is %v, %v: %d were acknowledged, of %d it is not known", value, err, c.counted, c.unknown)
		}
	}
	if err := errors.Join(checkData(v.Tree()), checkIndexes(v)); err != nil {
		t.Error(err)
	}
	positions := uint64(0)
	if err := changes(v, 0, func(tree.Change) bool { positions++; return true }); err != nil || positions != v.Position {
		t.Errorf("the log has %d changes, %v, and ends at %d", positions, err, v.Position)
	}
}

// A moodyLog is a Log whose node may not be the home, and cannot reach the others.
type moodyLog struct {
	*enginetest.Log
	away      bool
	barrier   error
	forwarded []engine.Request
}

func (l *moodyLog) Home(id store.ID) (uint64, bool) {
	tenure, _ := l.Log.Home(id)
	return tenure, !l.away
}

func (l *moodyLog) Barrier(context.Context, store.ID, time.Duration) error { return l.barrier }

func (l *moodyLog) Forward(_ context.Context, _ store.ID, req engine.Request) (engine.Commit, error) {
	l.forwarded = append(l.forwarded, req)
	return engine.Commit{Key: "forwarded"}, nil
}

func openMoody(t *testing.T, chances ...enginetest.Chances) (*moodyLog, *engine.Database) {
	t.Helper()
	s := newReplicaStore(t, 0)
	log, err := enginetest.NewLog(s.Store, s.id, append(chances, enginetest.Chances{})[0])
	if err != nil {
		t.Fatal(err)
	}
	moody := &moodyLog{Log: log}
	db, err := engine.Open(s.Store, s.id, engine.Options{Name: "db", Clock: state.NewClock(time.Now, rand.NewChaCha8([32]byte{1}), 0), Log: moody})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return moody, db
}

// TestAway shows that a node which is not the home judges nothing.
func TestAway(t *testing.T) {
	t.Parallel()
	log, db := openMoody(t)
	log.away = true
	w, err := put(path(t, "x"), `1`)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := db.Write(t.Context(), engine.Request{Write: w, Who: admin})
	if err != nil || commit.Key != "forwarded" || len(log.forwarded) != 1 || log.forwarded[0].At != w.At {
		t.Errorf("Write = %+v, %v, forwarded %v", commit, err, log.forwarded)
	}
	var submitted error
	if db.Submit(engine.Request{Write: w, Who: admin}, &engine.Chain{}, func(_ engine.Commit, err error) { submitted = err }) != nil ||
		!errors.Is(submitted, engine.ErrAgain) {
		t.Errorf("Submit answered %v", submitted)
	}
	if err := engine.SaveHooks(t.Context(), db, nil); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("SaveHooks = %v", err)
	}
}

// TestRefusalsNeedOthers shows that nobody is refused by a node that cannot reach the others, nor told that there was
// nothing to do: they may have written since.
func TestRefusalsNeedOthers(t *testing.T) {
	t.Parallel()
	log, db := openMoody(t)
	w, err := put(path(t, "x"), `{"a":"`+strings.Repeat("x", 100)+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	large, err := put(path(t, "x"), `"`+strings.Repeat("x", 100_000)+`"`)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]engine.Request{
		"denied":       {Write: w},
		"large denied": {Write: large},
		"mismatch":     {Write: w, IfMatch: "other", Who: admin},
		"simulated":    {Write: w, Who: auth.Identity{Admin: true, Simulate: true}},
	}
	wants := map[string]fault.Kind{"denied": fault.Denied, "large denied": fault.Denied, "mismatch": fault.Precondition}
	for name, req := range requests {
		log.barrier = errors.New("nobody is there")
		if _, err := db.Write(t.Context(), req); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: without others Write = %v", name, err)
		}
		log.barrier = nil
		want, refused := wants[name]
		if _, err := db.Write(t.Context(), req); (err != nil) != refused || refused && fault.KindOf(err) != want {
			t.Errorf("%s: Write = %v", name, err)
		}
	}
}
