// Package past opens databases as they were.
//
// A Keeper has a moment of a database restored from the archive into a directory of its own,
// opens that like any other store, and keeps it for a while: who looks at the past looks
// again. There is one moment for each database, and few in all, so that disk and memory stay
// bounded; what is being made delays nobody, since whoever asks meanwhile is told to try again.
package past

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

const (
	// cacheBytes is what a moment takes of memory for its rows.
	cacheBytes = 8 << 20
	// patience is how long making a moment may take.
	patience = 30 * time.Minute

	// MaxTables is how many files the store of a moment holds open, about.
	MaxTables = 100

	// turnTime is how long a database that was refused has its turn.
	turnTime = 10 * time.Second

	// DefaultMaxBytes is how much room all moments may take.
	DefaultMaxBytes = 4 << 30
)

// A Job is a moment that is to be made.
type Job struct {
	Database string
	// Number is that of the database in its store: one that is made again has another.
	Number store.ID
	At     time.Time
	// Dir is the data directory. It does not exist, unless From is set: then it holds the
	// database as it was at that earlier time.
	Dir  string
	From time.Time
	// MaxBytes is how much room the directory may take.
	MaxBytes int64
}

// Options configure a Keeper. Restore, Dir, Now and Logger are needed.
type Options struct {
	// Dir is a directory for moments. What is in it when a Keeper begins is removed.
	Dir string
	// Restore makes a data directory that holds a database as it was at a time.
	Restore func(ctx context.Context, job Job) error
	// MaxBytes is how much room all moments may take, about; DefaultMaxBytes if it is 0.
	MaxBytes int64
	// MaxMoments is how many are kept, 4 by default, and Idle how long one is that nobody
	// looks at, 10 minutes by default.
	MaxMoments int
	Idle       time.Duration

	Now    func() time.Time
	Logger *slog.Logger
}

// A Keeper keeps moments of databases.
type Keeper struct {
	options Options
	making  sync.WaitGroup
	begin   func() (context.Context, context.CancelFunc) // the time of a restore
	stop    context.CancelFunc                           // ends all of them

	emptying sync.Mutex // held while what is in the trash is removed
	breaking sync.Once
	broken   chan struct{} // closed when a disk failed

	mu      sync.Mutex
	closed  bool
	moments map[string]*Moment // by the name of the database
	trash   []*Moment          // that are to be removed
	made    uint64             // how many, for the names of directories
	// next is a database that was refused because a moment of another was made. Until it comes
	// again, or its turn is over, no other begins.
	next string
	turn time.Time
}

// A Moment is a database as it was.
type Moment struct {
	// Database is the database at that time. It must not be written to.
	Database *engine.Database
	At       time.Time

	keeper *Keeper
	name   string
	number store.ID
	dir    string
	store  *store.Store
	from   *Moment       // an earlier one that it is made from; nil for none
	room   int64         // how much it may take
	ready  chan struct{} // closed when it was made, or err is why not
	err    error
	// restored is the position to which the archive has taken the database.
	restored uint64

	// Guarded by Keeper.mu.
	users int
	used  time.Time // when the last of them left
	made  bool
	bytes int64 // what it takes
}

// New returns a Keeper. Its directory is emptied.
func New(options Options) (*Keeper, error) {
	if options.MaxMoments == 0 {
		options.MaxMoments = 4
	}
	if options.MaxBytes == 0 {
		options.MaxBytes = DefaultMaxBytes
	}
	if options.Idle == 0 {
		options.Idle = 10 * time.Minute
	}
	if err := os.RemoveAll(options.Dir); err != nil {
		return nil, fmt.Errorf("remove what is left of views of the past: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Keeper{
		options: options, moments: map[string]*Moment{}, stop: stop, broken: make(chan struct{}),
		begin: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, patience) },
	}, nil
}

// At returns a database as it was at a time. It must be closed. It fails with a
// fault.Invalid error for a time that is to come or that the archive does not reach, and with
// a fault.Unavailable one while another moment is made, or another one of the database is
// looked at.
func (k *Keeper) At(ctx context.Context, database string, number store.ID, at time.Time) (*Moment, error) {
	at = at.Truncate(time.Millisecond)
	if at.After(k.options.Now()) {
		return nil, fault.New(fault.Invalid, "at is in the future: %s", at.UTC().Format(time.RFC3339Nano))
	}
	m, err := k.find(database, number, at)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.ready:
	case <-k.broken:
		m.Close()
		return nil, errBroken
	case <-ctx.Done():
		m.Close()
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "the view of the past was not ready in time, try again")
	}
	if m.err != nil {
		m.Close()
		return nil, m.err
	}
	return m, nil
}

// find returns the moment, which may have to be made first, with one more user.
func (k *Keeper) find(database string, number store.ID, at time.Time) (*Moment, error) {
	defer k.empty()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, state.Classify(store.ErrClosed)
	}
	if k.isBroken() {
		return nil, errBroken
	}
	m := k.moments[database]
	if m != nil && m.At.Equal(at) && m.number == number {
		m.users++
		return m, nil
	}
	if m != nil && m.users > 0 {
		return nil, fault.New(fault.Unavailable, "somebody looks at another moment of this database, try again")
	}
	k.made++
	next := &Moment{At: at, keeper: k, name: database, number: number, dir: filepath.Join(k.options.Dir, strconv.FormatUint(k.made, 10)), ready: make(chan struct{}), users: 2}
	if m != nil && m.At.Before(at) && m.err == nil && m.number == number {
		next.from, next.dir = m, m.dir
		delete(k.moments, database)
	} else if m != nil {
		k.remove(m)
	}
	if err := k.makeRoom(next); err != nil {
		if next.from != nil {
			k.moments[database] = next.from
		}
		return nil, err
	}
	m = next
	k.moments[database] = m
	k.making.Go(func() {
		defer close(m.ready)
		defer m.Close() // whoever makes it is a user, too
		m.make()
	})
	return m, nil
}

// refused gives a database the next turn, if no other has it. So one of which ever other moments are
// asked for does not keep the rest from theirs. The lock is held.
func (k *Keeper) refused(database string) {
	if now := k.options.Now(); k.next == "" || !now.Before(k.turn) {
		k.next, k.turn = database, now.Add(turnTime)
	}
}

// hasTurn reports whether another moment of a database may be made now, as far as the others are
// concerned. The lock is held.
func (k *Keeper) hasTurn(database string) bool {
	if k.next == "" || k.next == database || !k.options.Now().Before(k.turn) {
		k.next = ""
		return true
	}
	return false
}

// makeRoom removes moments that nobody looks at until there is room for another one. One is
// made at a time: it may take all that is left. The lock is held.
func (k *Keeper) makeRoom(m *Moment) error {
	for first := true; ; first = false {
		taken := int64(0)
		for _, other := range k.moments {
			if !other.made {
				k.refused(m.name)
				return fault.New(fault.Unavailable, "another moment of the past is being made, try again")
			}
			taken += other.bytes
		}
		if first && !k.hasTurn(m.name) {
			return fault.New(fault.Unavailable, "another database has its turn, try again")
		}
		m.room = k.options.MaxBytes - taken
		if len(k.moments) < k.options.MaxMoments && m.room > k.options.MaxBytes/2 {
			return nil
		}
		idle := k.longestIdle()
		switch {
		case idle != nil:
			k.remove(idle)
		case len(k.moments) >= k.options.MaxMoments || m.room <= 0:
			return fault.New(fault.Unavailable, "too many moments of the past are being looked at, try again")
		default:
			return nil
		}
	}
}

// longestIdle returns the moment that nobody has looked at for the longest time, nil if all
// are being looked at. The lock is held.
func (k *Keeper) longestIdle() (idle *Moment) {
	for _, m := range k.moments {
		if m.users == 0 && (idle == nil || m.used.Before(idle.used)) {
			idle = m
		}
	}
	return idle
}

// make restores the moment and opens it.
func (m *Moment) make() {
	k := m.keeper
	k.empty() // what it takes the room of
	ctx, cancel := k.begin()
	defer cancel()
	began := k.options.Now()
	defer m.note()
	job := Job{Database: m.name, Number: m.number, At: m.At, Dir: m.dir, MaxBytes: m.room}
	if job.From, m.err = m.goOn(); m.err != nil {
		return
	}
	if m.err = k.options.Restore(ctx, job); m.err != nil {
		return
	}
	if m.err = m.open(); m.err != nil {
		return
	}
	k.options.Logger.Info("a view of the past was made", "database", m.name, "at", m.At, "took", k.options.Now().Sub(began).Round(time.Millisecond))
}

// note notes that the moment was made, or not, and how much room it takes.
func (m *Moment) note() {
	bytes := int64(0)
	_ = filepath.WalkDir(m.dir, func(_ string, f fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that is gone takes no room
		}
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	m.keeper.mu.Lock()
	defer m.keeper.mu.Unlock()
	m.made, m.bytes = true, bytes
}

// open opens the data directory.
func (m *Moment) open() (err error) {
	m.store, err = store.Open(m.dir, store.Options{
		Logger: Quiet(m.keeper.options.Logger), CacheBytes: cacheBytes, BallastBytes: -1, MaxTables: MaxTables, Fatal: m.keeper.Fatal,
	})
	if err != nil {
		return err
	}
	id, found, err := m.store.Find(m.name)
	if err == nil && (!found || id != m.number) {
		err = fault.New(fault.Invalid, "the database %s was made after %s", m.name, m.At.UTC().Format(time.RFC3339))
	}
	if err == nil {
		m.restored, err = m.store.Live(id).Position()
	}
	if err != nil {
		return err
	}
	clock := state.NewClock(m.keeper.options.Now, rand.Reader, m.store.LastMillis())
	m.Database, err = engine.Open(m.store, id, engine.Options{Clock: clock})
	return err
}

// Close says that a user needs the moment no longer. One that could not be made is
// forgotten.
func (m *Moment) Close() {
	k := m.keeper
	defer k.empty()
	k.mu.Lock()
	defer k.mu.Unlock()
	m.users--
	m.used = k.options.Now()
	if m.users == 0 && (m.err != nil || k.closed) && k.moments[m.name] == m {
		k.remove(m)
	}
}

// Run removes moments that nobody has looked at for a while, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for pause.For(ctx, k.options.Idle/4) == nil {
		k.sweep()
	}
}

func (k *Keeper) sweep() {
	defer k.empty()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.moments {
		if m.users == 0 && k.options.Now().Sub(m.used) >= k.options.Idle {
			k.remove(m)
		}
	}
}

// Close removes all moments, and ends those that are being made. Those that are being looked at
// go when they are closed.
func (k *Keeper) Close() {
	k.stop()
	k.mu.Lock()
	k.closed = true
	for _, m := range k.moments {
		if m.users == 0 {
			k.remove(m)
		}
	}
	k.mu.Unlock()
	made := make(chan struct{})
	go func() {
		k.making.Wait()
		close(made)
	}()
	select {
	case <-made:
		k.empty()
	case <-k.broken:
	}
}
