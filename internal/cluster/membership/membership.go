// Package membership decides which nodes make up a cluster: it founds one, joins one, replaces a node that was lost, and removes
// nodes.
//
// [Enter] is called once at the start of a process, before the store is opened. A node whose directory is that of a
// member starts etcd with what it has. Any other asks all addresses of its list who they are, and waits until it
// knows: if one is a member, it joins; if all are there and none has data, the first in order founds; if one has data, that
// one founds; if two have, all refuse. A founding node has the others promise first that they do not. So a node that has lost its
// disk never founds a second cluster, and there is no command that could be given twice.
//
// The file cluster.json in the data directory says that it belongs to a cluster. It is written before etcd starts. A
// directory that has it founds nothing, even if etcd's own files are gone; only one whose founding was cut short, which no
// other node can have joined, begins again.
//
// A node that joins fetches a copy of the store of a member first ([Membership.Serve] is the other end), then gets
// a place as a member without a vote, a learner. When it has caught up, [Membership.Ready] gets it its vote. A
// learner never gets the id of an earlier one: what etcd knows of a lost disk must not count for a new one.
//
// [Membership.Run] keeps the connections to all members, and says which of them are up: those that vote, are reached,
// and have said that they are ready.
package membership

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/pause"
)

var (
	// ErrRemoved says that the cluster has removed this node. It may join again with an empty directory.
	ErrRemoved = errors.New("this node was removed from the cluster: to join again, start it with an empty data directory")
	// ErrTooOld says that the cluster has a level that this version does not know.
	ErrTooOld = errors.New("this version is too old")
	// ErrNoNode says that there is no node with an address that was given.
	ErrNoNode = errors.New("is no node of this cluster")
	// ErrRefused says that this node can neither found nor join a cluster with the directory that it has.
	ErrRefused = errors.New("this node neither founds nor joins a cluster")
)

// Options say how a node enters its cluster.
type Options struct {
	// Data is the data directory.
	Data string
	// HasStore says that there is a store in it.
	HasStore bool
	// Forget has that store forget the cluster that it was of before. It is called before this node founds another; nil for nothing.
	Forget func() error
	Front  *peer.Front
	// List are the addresses of nodes, those of --cluster.
	List []string
	// Election and Quota are etcd's, see [etcdlog.Options].
	Election time.Duration
	Quota    int64
	// Fatal is told what etcd cannot go on with. It must end the process.
	Fatal func(text string)
	// CopyRate is how many bytes a second a copy may take, 64 MiB.
	CopyRate int64
	// Known is the newest level of records that this version can apply; 0 is that of the binary.
	Known uint16
	// Now is the clock that paces copies.
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	defaultCopyRate = 64 << 20
	// askPause is the time between two rounds of questions, waitLog that between two lines in the log.
	askPause = 200 * time.Millisecond
	waitLog  = 5 * time.Second
	// callTime is how long a peer may take for a small answer, joinTime for taking a member.
	callTime = 2 * time.Second
	// refusalTime is how long a node that refuses still answers.
	refusalTime = 3 * time.Second
	joinTime    = 10 * time.Second
	maxList     = 32
	maxID       = 64 // of a cluster
)

// A Membership is this node's place in its cluster.
type Membership struct {
	o       Options
	ask     asker
	process string // another for each process

	copies copies
	joins  chan struct{} // one at a time
	// etcd ends when etcd has ended by itself; its cause is why.
	etcd   context.Context
	failed context.CancelCauseFunc
	all    sync.WaitGroup
	life   context.Context
	end    context.CancelFunc

	// writing is held by who changes cluster.json.
	writing sync.Mutex

	mu       sync.Mutex
	phase    phase
	promised string // the node that founds, if this one has promised not to
	file     file
	hasStore bool
	ready    bool
	aside    bool           // this node is to be the home of nothing
	member   etcdlog.Member // once etcd runs
	learner  uint64         // the id that this node was given
	peers    []etcdlog.Peer
	serving  map[string]bool      // nodes that have said that they are ready
	asides   map[string]bool      // nodes that have said that they are ready, and step aside
	waiting  map[string]bool      // nodes that have said that they wait before they enter
	guests   map[string]time.Time // nodes that ask to join, and since when
	changed  chan struct{}        // closed when one of the last three, or ready, changes
	founded  bool
	copied   bool
	// copyPause is how long it is waited after the last copy that failed.
	copyPause time.Duration
}

// Enter makes this node a member of its cluster. It returns when etcd runs and there is a store, or when this node has founded
// a cluster: then the store is the caller's to make, if there is none. It waits for as long as it takes, and logs for what.
func Enter(ctx context.Context, o Options) (*Membership, error) {
	o.CopyRate, o.Known = cmp.Or(o.CopyRate, defaultCopyRate), cmp.Or(o.Known, record.Known)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // what is used where no clock is given
	}
	o.List = sorted(o.List)
	if o.Front.Files().Cert == "" {
		return nil, errors.New("a front without a directory for certificates: etcd takes them only as files")
	}
	if len(o.List) == 0 || len(o.List) > maxList {
		return nil, fmt.Errorf("a cluster's list has %d addresses, want 1 to %d", len(o.List), maxList)
	}
	m := &Membership{
		o: o, ask: asker{o.Front}, process: random(), hasStore: o.HasStore, joins: make(chan struct{}, 1),
		serving: map[string]bool{}, guests: map[string]time.Time{}, changed: make(chan struct{}),
	}
	m.life, m.end = context.WithCancel(context.Background())
	m.etcd, m.failed = context.WithCancelCause(context.Background())
	err := m.prepare()
	if err == nil {
		m.answer()
		o.Front.Keep(o.List)
		err = m.enter(ctx)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// sorted is a list in order, each address once.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// random is an id that no other has.
func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// prepare reads what the directory says, and clears away what an earlier process has left half-done.
func (m *Membership) prepare() (err error) {
	if err := m.copies.clear(m.o.Data); err != nil {
		return err
	}
	installed, err := finishCopy(m.o.Data)
	if err != nil {
		return err
	}
	if m.hasStore = m.hasStore || installed; m.hasStore {
		// What was received of a copy is of no use any more.
		if err := os.RemoveAll(filepath.Join(m.o.Data, partDir)); err != nil {
			return err
		}
	}
	if err := CheckLevel(m.o.Data, m.o.Known); err != nil {
		return err
	}
	if m.file, err = readFile(m.o.Data); err != nil {
		return err
	}
	if m.file.Left {
		return leftError(m.o.Data, m.file)
	}
	if m.file.Founding {
		// No other node can have joined: the cluster is forgotten.
		if err := os.RemoveAll(LogDir(m.o.Data)); err != nil {
			return err
		}
		m.file = file{}
	}
	if addr := m.o.Front.Addr(); m.file.Node != "" && m.file.Node != addr && HasLog(m.o.Data) {
		return fmt.Errorf("%w: the directory is that of the node %s, and --cluster-addr is %s: give it its address again, or remove %s from the cluster and start with an empty directory",
			ErrRefused, m.file.Node, addr, m.file.Node)
	}
	return nil
}

// enter goes on step by step until this node is a member.
func (m *Membership) enter(ctx context.Context) error {
	logged, last := time.Time{}, ""
	for {
		wait, err := m.step(ctx)
		if err != nil || wait == "" {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w while it waited %s", context.Cause(ctx), wait)
		}
		now := m.o.Now()
		if since := now.Sub(logged); since < 0 || since >= waitLog {
			if wait != last || !logged.IsZero() {
				m.o.Logger.Info("this node waits to enter its cluster", "waits", wait)
			}
			logged, last = now, wait
		}
		if err := pause.For(ctx, askPause); err != nil {
			return fmt.Errorf("%w while it waited %s", err, wait)
		}
	}
}

// step does what can be done now. It returns what this node waits for, or nothing if it is a member.
func (m *Membership) step(ctx context.Context) (wait string, err error) {
	if m.Log() == nil && m.file.Cluster != "" && HasLog(m.o.Data) {
		if err := m.start(ctx, []string{m.o.Front.Addr()}, false); err != nil {
			return setLogAside(ctx, m, err)
		}
	}
	if m.Log() != nil {
		return m.fetchMissing(ctx)
	}
	answers, silent := m.ask.hellos(ctx, m.o.List)
	v, err := decide(m.hello(), m.o.List, answers, silent)
	if err != nil {
		_ = pause.For(ctx, refusalTime) // the others are to hear what this node has
		return "", err
	}
	if v.level > m.o.Known {
		return "", fmt.Errorf("%w: the cluster is at level %d, and it knows levels up to %d: start the version that the other nodes have, or a newer one", ErrTooOld, v.level, m.o.Known)
	}
	switch v.do {
	case found:
		return m.found(ctx)
	case join:
		return m.join(ctx, v)
	}
	return v.why, nil
}

// start starts etcd and leads its peers to it.
func (m *Membership) start(ctx context.Context, members []string, founds bool) error {
	f := m.o.Front
	member, err := etcdlog.Start(etcdlog.Options{
		Dir: LogDir(m.o.Data), Peer: f.Addr(), Listen: "127.0.0.1:0", Cluster: m.file.Cluster, Members: members, Founds: founds,
		Election: m.o.Election, Quota: m.o.Quota, TLS: f.Files(), Fatal: m.o.Fatal, Log: m.o.Logger,
	})
	if err != nil {
		return err
	}
	f.PassTo(member)
	m.all.Go(func() {
		select {
		case err := <-member.Failed():
			m.failed(ownFailure(member, err))
		case <-m.life.Done():
		}
	})
	m.update(func() { m.member = member })
	if !founds {
		m.update(func() { m.phase = isMember })
	}
	return nil
}

// Close ends this node's etcd. Its front stays open, and passes nothing on.
func (m *Membership) Close() {
	m.Serve(nil)
	for _, kind := range []string{helloCall, promiseCall, joinCall} {
		m.o.Front.Handle(kind, nil)
	}
	m.o.Front.PassTo(nil)
	m.end()
	if member := m.Log(); member != nil {
		member.Stop()
	}
	m.all.Wait()
}

// Log is the etcd of this node, nil before it runs.
func (m *Membership) Log() etcdlog.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.member
}

// Cluster is the id of the cluster.
func (m *Membership) Cluster() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file.Cluster
}

// fileOf is what cluster.json says.
func fileOf(m *Membership) file {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file
}

// Founded says that this process has founded the cluster.
func (m *Membership) Founded() bool { return m.founded }

// Copied says that this process has fetched its store from another node.
func (m *Membership) Copied() bool { return m.copied }

// update changes what others wait for.
func (m *Membership) update(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// failure is why etcd has ended by itself.
func (m *Membership) failure() error { return context.Cause(m.etcd) }
