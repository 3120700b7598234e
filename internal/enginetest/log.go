package enginetest

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// logWay has the databases of tests commit by a Log.
var logWay = flag.String("log", "", "what the databases of tests agree by: the store alone, a log that applies "+
	"at once, one that is late, or one that often refuses")

// OpenDatabase is engine.Open, with the Log that the flag asks for.
func OpenDatabase(s *store.Store, id store.ID, opts engine.Options) (*engine.Database, error) {
	ways := map[string]Chances{"once": {}, "late": {Late: 2}, "refuse": {Late: 4, Refuse: 3}}
	if *logWay == "" {
		return engine.Open(s, id, opts)
	}
	chances, ok := ways[*logWay]
	if !ok {
		return nil, errors.New("no log is called " + *logWay)
	}
	return OpenBy(chances)(s, id, opts)
}

// OpenGroups is OpenTiny with a Log that is late at times, and refuses some groups.
func OpenGroups(s *store.Store, id store.ID, opts engine.Options) (*engine.Database, error) {
	opts.Limits = TinyLimits()
	return OpenBy(Chances{Late: 4, Refuse: 5})(s, id, opts)
}

// SkipIfRefused skips a test which rests on it that each write is judged once.
func SkipIfRefused(t testing.TB) {
	if *logWay == "refuse" {
		t.Skip("the log of this run refuses groups, which are judged again")
	}
}

// OpenBy returns an OpenFunc of databases with a Log of their own each.
func OpenBy(chances Chances) OpenFunc {
	return func(s *store.Store, id store.ID, opts engine.Options) (*engine.Database, error) {
		log, err := NewLog(s, id, chances)
		if err != nil {
			return nil, err
		}
		opts.Log = log
		db, err := engine.Open(s, id, opts)
		log.mu.Lock()
		defer log.mu.Unlock()
		log.database = db
		return db, err
	}
}

// Chances say how often, one time in so many, a Log does something. Never is 0.
type Chances struct {
	Late   int // it answers from another goroutine, after a while
	Refuse int // it refuses a group
	Lose   int // it does not know what became of a group: half of them are committed later, if that can be
	Replay func(Record)
	Seed   uint64
}

// A Record is what a Log has taken: the effects of one group.
type Record struct {
	Applied store.Applied
	Effects [][]byte
	Drop    bool
}

// A Log is one of a single node and a single database. It has the guarantees of a real one and no more.
type Log struct {
	id      store.ID
	store   *store.Store
	chances Chances

	mu       sync.Mutex
	database *engine.Database // nil until it is open
	rng      *rand.Rand
	tenure   uint64
	position uint64 // of the newest commit in the log
	applied  store.Applied
	lost     *lostGroup // one that may still come into the log
}

type lostGroup struct {
	base    uint64
	effects [][]byte
}

// NewLog returns a Log that goes on where the store is.
func NewLog(s *store.Store, id store.ID, chances Chances) (*Log, error) {
	l := &Log{id: id, store: s, chances: chances, rng: rand.New(rand.NewPCG(chances.Seed, uint64(id))), tenure: 1}
	view := s.View()
	defer view.Release()
	var err, appliedErr error
	l.position, err = view.Tree(id).Position()
	l.applied, appliedErr = store.AppliedOf(s, byte(id))
	return l, errors.Join(err, appliedErr)
}

// happens reports whether something does whose chance is one in n.
func (l *Log) happens(n int) bool { return n > 0 && l.rng.IntN(n) == 0 }

// Home implements engine.Log.
func (l *Log) Home(store.ID) (tenure uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenure, true
}

// Append implements engine.Log.
func (l *Log) Append(g *engine.Group) {
	l.mu.Lock()
	late := l.happens(l.chances.Late)
	l.mu.Unlock()
	if !late {
		g.Tell(l.append(g))
		return
	}
	go func() {
		for range 20 {
			runtime.Gosched()
		}
		g.Tell(l.append(g))
	}()
}

func (l *Log) append(g *engine.Group) engine.Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.find()
	switch {
	case g.Tenure != l.tenure || g.Base != l.position:
		return engine.Refused
	case l.happens(l.chances.Refuse):
		if l.rng.IntN(2) == 0 {
			l.tenure++ // another node was the home for a moment
		}
		return engine.Refused
	case l.happens(l.chances.Lose) && !g.Drop:
		if l.rng.IntN(2) == 0 {
			l.lost = &lostGroup{g.Base, effectsOf(g.Parts)}
		}
		return engine.NotKnown
	}
	effects := [][]byte(nil)
	if l.chances.Replay != nil && !g.Drop {
		effects = effectsOf(g.Parts)
	}
	position := newest(g.Parts, l.position)
	if err := l.commit(g.Parts); err != nil {
		return engine.NotKnown // the store is closed
	}
	l.position = position
	l.replay(Record{l.applied, effects, g.Drop})
	return engine.Applied
}

// commit commits the next record.
func (l *Log) commit(parts []store.RecordPart) error {
	next := l.applied
	next.Shard, next.Number, next.Tenure = byte(l.id), next.Number+1, l.tenure
	err := store.CommitRecord(l.store, parts, next)
	if err == nil {
		l.applied = next
	}
	return err
}

func (l *Log) replay(r Record) {
	if l.chances.Replay != nil {
		l.chances.Replay(r)
	}
}

func effectsOf(parts []store.RecordPart) (effects [][]byte) {
	for _, p := range parts {
		if p.Batch != nil {
			effects = append(effects, p.Batch.Effect())
		}
	}
	return effects
}

func newest(parts []store.RecordPart, position uint64) uint64 {
	for _, p := range parts {
		if p.Batch != nil {
			position = max(position, p.Batch.Logged.Position)
		}
	}
	return position
}

// find has the group come into the log of which nothing was known, or makes sure that it never does.
func (l *Log) find() {
	lost := l.lost
	if l.lost = nil; lost == nil || l.database == nil || lost.base != l.position || l.rng.IntN(4) == 0 {
		return
	}
	effects := make([]*store.Effect, len(lost.effects))
	parts := make([]store.RecordPart, len(lost.effects))
	for i := range effects {
		var err error
		if effects[i], err = store.BatchOf(l.store, l.id, append([]byte(nil), lost.effects[i]...)); err != nil {
			panic("the effect of a commit: " + err.Error())
		}
		parts[i].Batch = effects[i].Batch
	}
	following, err := engine.Follow(l.database, effects)
	if err != nil {
		panic("what was lost does not follow: " + err.Error())
	}
	for i, t := range following.Tickets {
		parts[i].Ticket = t
	}
	position := newest(parts, l.position)
	err = l.commit(parts)
	following.End(err == nil)
	if err == nil {
		l.position = position
		l.replay(Record{l.applied, lost.effects, false})
	}
}

// Barrier implements engine.Log.
func (l *Log) Barrier(context.Context, store.ID, time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rng.IntN(2) == 0 {
		l.find()
	}
	return nil
}

// Enter implements engine.Log.
func (l *Log) Enter(context.Context, <-chan time.Time, store.ID, *engine.Request) (leave func(), err error) {
	return func() {}, nil
}

// Forward implements engine.Log. There is no other node.
func (l *Log) Forward(context.Context, store.ID, engine.Request) (engine.Commit, error) {
	return engine.Commit{}, fault.New(fault.Unavailable, "there is no other node")
}
