// Package assembly puts the parts of a cluster's node together, in the order in which a process needs them.
//
// [Enter] comes first, before the store is opened: the front listens, the node founds a cluster or joins one, and there is a store.
// [Assembly.Log] is what the databases of the store are opened with. [Assembly.Start] then has the node apply what the others have
// written, waits until it has all of it, and gets it its vote. [Assembly.HandOver] gives away what other nodes can do as well, before a
// stop, and [Assembly.Close] ends everything.
//
// [Assembly.Status] is what an operator is told.
package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/doctor"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/invite"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/rowcheck"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// tlsDir is where the certificates of a node lie, for etcd.
const tlsDir = "cluster-tls"

// largestForward is how long a request may be that is sent to another node, with all that stands around it.
const largestForward = 300 << 20

// Available returns why this binary cannot be a node of a cluster, nil if it can.
func Available() error {
	if !etcdlog.Linked {
		return etcdlog.ErrLeftOut
	}
	return nil
}

// Options say which node of which cluster this is.
type Options struct {
	// Data is the data directory.
	Data string
	// List are the addresses of nodes, Addr that of this one, and Listen where it listens if that differs.
	List         []string
	Addr, Listen string
	Key          peer.Key
	// Election is how long a silent leader is waited for, LogBytes how large the log may grow; 0 is the default.
	Election time.Duration
	LogBytes int64
	// Extra returns the files of the data directory that all nodes have alike.
	Extra func() []string
	// Fatal is told what etcd cannot go on with. It must end the process.
	Fatal func(text string)
	// Version is told to the other nodes.
	Version string
	// CheckRate is how many bytes a second are read to compare the rows of the nodes; 0 for no comparison.
	CheckRate int64
	// Settings are the values of all flags, by their names. Of those that must be the same on all nodes, hashes are told.
	Settings map[string]string
	// Metrics count, over all starts of a node in a process; nil for nobody to see.
	Metrics *cluster.Metrics
	// KeyFile is the file that Key was read from, if it was.
	KeyFile string
	// Certificates returns those that clients are shown; nil for none.
	Certificates func() []doctor.Certificate
	Now          func() time.Time
	Logger       *slog.Logger
}

// An Assembly is a node of a cluster.
type Assembly struct {
	o          Options
	front      *peer.Front
	membership *membership.Membership
	data       *databases.Databases
	node       *cluster.Node
	store      *store.Store
	book       *invite.Book
	leaving    leaving
	checker    *rowcheck.Checker
	alarms     *membership.Alarms

	addr  atomic.Value // a string: where clients are served
	ready atomic.Bool
	heads atomic.Pointer[shard.Heads] // as they were asked for last
	told  told

	cancel context.CancelFunc
	loops  sync.WaitGroup
	failed chan error // takes what ended the node
	once   sync.Once
}

// Enter makes this process a node of its cluster, and returns when there is a store to be opened.
func Enter(ctx context.Context, o Options) (*Assembly, error) {
	front, err := peer.Listen(peer.Options{
		Addr: o.Addr, Listen: o.Listen, Key: o.Key, Dir: filepath.Join(o.Data, tlsDir), MaxBody: largestForward, MaxBodies: 2 * largestForward,
		MaxCalls: 1 << 14, Now: o.Now, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("listen for the other nodes: %w", err)
	}
	if o.Metrics == nil {
		o.Metrics = &cluster.Metrics{}
	}
	o.Settings = status.Hashes(o.Settings)
	a := &Assembly{o: o, front: front, cancel: func() {}, failed: make(chan error, 2), leaving: newLeaving()}
	a.addr.Store("")
	_, statErr := os.Stat(filepath.Join(o.Data, layout.PebbleDir))
	a.membership, err = membership.Enter(ctx, membership.Options{
		Data: o.Data, HasStore: statErr == nil, Forget: func() error { return forgetCluster(o) }, Front: front, List: o.List, Election: o.Election, Quota: quotaOf(o.LogBytes),
		Fatal: o.Fatal, Now: o.Now, Logger: o.Logger,
	})
	if err == nil && a.membership.Founded() && statErr != nil {
		err = forgetCluster(o) // it makes a store
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// What is used where Options say nothing: how large the log may grow, and how long a silent leader is waited for.
const (
	DefaultLogBytes = 1 << 30
	DefaultElection = etcdlog.DefaultElection
)

// quotaOf is how large etcd's file may be, for a log of so many bytes.
func quotaOf(bytes int64) int64 {
	if bytes == 0 {
		bytes = DefaultLogBytes
	}
	return min(4*bytes, 8<<30)
}

// Log returns what the databases of a store agree by. It is called once.
func (a *Assembly) Log(s *store.Store, led func(shard int, home bool)) (engine.Log, error) {
	var err error
	a.data, err = databases.New(databases.Options{
		Store: s, Peers: peers{a}, Logger: a.o.Logger, Led: led,
		Checked: func(shard int, number uint64, ids []store.ID) { a.checker.Take(shard, number, s, ids) },
		Aside:   func() bool { return s.Health().Disk != diskOK && len(a.others()) > 0 },
		Raised:  func(level uint16) error { return membership.NoteLevel(a.membership, level) },
	})
	return a.data, err
}

// peers calls other nodes by their number.
type peers struct{ *Assembly }

// Call implements [databases.Peers].
func (p peers) Call(ctx context.Context, node record.NodeID, kind string, body []byte) ([]byte, error) {
	addr := p.membership.AddrOf(node)
	if addr == "" {
		return nil, databases.ErrNotSent
	}
	said, err := p.front.Call(ctx, addr, kind, body)
	if errors.Is(err, peer.ErrNotSent) {
		err = fmt.Errorf("%w: %w", databases.ErrNotSent, err)
	}
	return said, err
}

// Start has the node apply what the others have written, and returns when it has all of it and may be asked.
func (a *Assembly) Start(ctx context.Context, s *store.Store, c *catalog.Catalog) error {
	a.node = cluster.New(cluster.Options{
		ID: record.NodeID(a.membership.Log().ID()), Log: a.membership.Log(), Applier: a.data, Now: a.o.Now,
		Level:  func() uint16 { return databases.Level(a.data) },
		Became: a.data.Became, Logger: a.o.Logger, Metrics: a.o.Metrics,
		Upkeep: cluster.Upkeep{Flush: a.data.Flush, Members: a.memberIDs, LogBytes: a.o.LogBytes, File: a.membership.Log()},
	})
	a.data.Bind(a.node, c)
	a.store = s
	notes := databases.NotesOf(a.data)
	a.book = invite.New(invite.Options{Notes: notes, Key: a.o.Key, Self: a.o.Addr, Nodes: func() []string { return nodesOf(a) }, Now: a.o.Now, Logger: a.o.Logger})
	a.checker, a.alarms = newChecker(a), membership.NewAlarms(a.membership)
	for kind, serve := range map[string]func(context.Context, []byte) ([]byte, error){
		databases.Forward: a.data.ServeForward, databases.Create: a.data.ServeCreate, databases.Drop: a.data.ServeDrop,
		statusCall: a.serveStatus, examineCall: func(context.Context, []byte) ([]byte, error) { return json.Marshal(examine(a)) }, databases.Swap: notes.Serve,
	} {
		a.front.Handle(kind, func(ctx context.Context, _ string, body []byte) ([]byte, error) { return serve(ctx, body) })
	}
	running, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.loops.Go(func() { a.fail(running, a.node.Run(running)) })
	a.loops.Go(func() { a.fail(running, a.membership.Run(running, a.node.SetUp)) })
	a.loops.Go(func() { a.balance(running) })
	a.loops.Go(func() { a.checker.Run(running) })
	a.loops.Go(func() { tend(running, a) })
	a.loops.Go(func() { watchAlarms(running, a) })
	a.loops.Go(func() { keepRoom(running, a) })
	a.loops.Go(func() { watchBursts(running, a) })
	a.membership.Serve(source{s, a.o.Extra, a.node})
	return a.becomeReady(ctx)
}

// becomeReady waits until this node may be asked, or cannot go on.
func (a *Assembly) becomeReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- a.membership.Ready(ctx, a.CaughtUp) }()
	look := time.NewTicker(readyLook)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			becameReady(a, err)
			return err
		case err := <-a.failed:
			cancel(err)
			return errors.Join(err, <-done)
		case <-look.C:
			if err := a.Broken(); err != nil {
				cancel(err)
				return errors.Join(err, <-done)
			}
		}
	}
}

// becameReady has this node do what only one may do that has a vote.
func becameReady(a *Assembly, err error) {
	a.ready.Store(err == nil)
	if err != nil {
		return
	}
	a.front.HandleInvite(a.book.Judge)
	if err := keepList(a); err != nil {
		a.o.Logger.Warn("the list of nodes was not kept for the next start", "error", err)
	}
}

// readyLook is how often a node that catches up looks whether it can.
const readyLook = 200 * time.Millisecond

// fail notes what has ended a part of the node by itself. If that is a record of a newer version, the next start refuses without looking at
// the log.
func (a *Assembly) fail(running context.Context, err error) {
	if newer := (*cluster.NewerError)(nil); errors.As(err, &newer) {
		err = errors.Join(err, membership.NoteLevel(a.membership, newer.Level))
	}
	if running.Err() == nil {
		a.failed <- err
	}
}

// Failed is told why the node cannot go on.
func (a *Assembly) Failed() <-chan error { return a.failed }

// CaughtUp returns when this node has everything that was acknowledged before the call.
func (a *Assembly) CaughtUp(ctx context.Context) error {
	for s := range shard.Count {
		if err := a.node.Barrier(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// handOverTime is how long giving a shard away may take.
const handOverTime = 2 * time.Second

// HandOver gives the shards of which this node is the home, and the lead of the log, to other nodes. It does nothing where there is no other.
func (a *Assembly) HandOver(ctx context.Context) {
	if a.node == nil {
		return
	}
	a.ready.Store(false)
	a.membership.SetReady(false)
	if others := a.others(); len(others) > 0 {
		a.giveTo(ctx, others)
	}
}

// giveTo gives the shards of which this node is the home, and the lead of the log, to other nodes.
func (a *Assembly) giveTo(ctx context.Context, others []record.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	var all sync.WaitGroup
	for s := range shard.Count {
		if _, home := a.node.Home(s); home {
			all.Go(func() {
				if err := a.node.Give(ctx, s, cluster.Order(s, others)[0]); err != nil {
					a.o.Logger.Warn("a shard was not given to another node: one takes it when this one is gone", "shard", s, "error", err)
				}
			})
		}
	}
	all.Wait()
	if log := a.membership.Log(); log.Leader() == log.ID() {
		if err := log.MoveLeader(ctx, uint64(others[0])); err != nil {
			a.o.Logger.Debug("the lead of the log was not moved", "error", err)
		}
	}
}

// memberIDs are the numbers of all nodes.
func (a *Assembly) memberIDs() (ids []record.NodeID) {
	for _, m := range a.membership.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

const (
	// balanceEvery is how often a node looks whether others are to lead what it does.
	balanceEvery = 10 * time.Second
	// balanceAfter is how long a node must have been well before it leads again.
	balanceAfter = 30 * time.Second
)

// balance gives shards to the nodes that come first in their order, when those have been well for a while.
func (a *Assembly) balance(ctx context.Context) {
	for pause.For(ctx, balanceEvery) == nil {
		well, settled := wellNodes(a, a.membership.Members())
		if !settled {
			continue
		}
		for s := range shard.Count {
			_, home := a.node.Home(s)
			if first := cluster.Order(s, well)[0]; home && first != a.node.ID() && a.ready.Load() {
				giving, cancel := context.WithTimeout(ctx, handOverTime)
				if err := a.node.Give(giving, s, first); err != nil {
					a.o.Logger.Debug("a shard was not given to the node that comes first", "shard", s, "error", err)
				}
				cancel()
			}
		}
	}
}

// wellNodes are the nodes that may be homes, this one among them unless its clock is wrong. It reports false while a node is too new to be one of them: what
// is given to another node now would be given again.
func wellNodes(a *Assembly, members []membership.Member) (well []record.NodeID, settled bool) {
	middle := middleClock(members, a.node.ID())
	if middle.Abs() <= clockLimit {
		well = append(well, a.node.ID())
	}
	for _, m := range members {
		switch {
		case m.ID == a.node.ID() || !m.Voter || !m.Up || !m.Ready:
		case (m.Clock - middle).Abs() > clockLimit: // what it judges would be of another time
		case a.o.Now().Sub(m.Since) <= balanceAfter:
			return nil, false
		default:
			well = append(well, m.ID)
		}
	}
	return well, len(well) > 0
}

// others are the nodes that may take over from this one.
func (a *Assembly) others() (ids []record.NodeID) {
	for _, m := range a.membership.Members() {
		if m.ID != a.node.ID() && m.Voter && m.Up && m.Ready {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// IsHome reports whether this node is the home of the first shard, which does what is to be done once for all.
func (a *Assembly) IsHome() bool {
	_, home := a.node.Home(0)
	return home
}

// Notes are the rows that all nodes have alike and that are of no database.
func (a *Assembly) Notes() *databases.Notes { return databases.NotesOf(a.data) }

// Tenure returns in which tenure this node is the home of a shard, and whether it is.
func (a *Assembly) Tenure(s int) (tenure uint64, home bool) { return a.node.Home(s) }

// ErrNoHome says that no other node is known to be the home of a shard.
var ErrNoHome = errors.New("the home of the shard is not known")

// DialHome makes a connection to the home of a shard, which is another node, and says the body before it.
func (a *Assembly) DialHome(ctx context.Context, s int, kind string, body []byte) (net.Conn, error) {
	home := a.node.HomeOf(s)
	addr := a.membership.AddrOf(home)
	if home == a.node.ID() || addr == "" {
		return nil, ErrNoHome
	}
	return a.front.Dial(ctx, addr, kind, body)
}

// HandleConn has connections of a kind taken that other nodes make to this one as a home.
func (a *Assembly) HandleConn(kind string, take peer.ConnHandler) { a.front.HandleConn(kind, take) }

// Close ends the node. The databases must be closed before, and the store after it.
func (a *Assembly) Close() { a.once.Do(a.close) }

func (a *Assembly) close() {
	a.front.HandleInvite(nil)
	a.cancel()
	a.loops.Wait()
	if a.membership != nil {
		a.membership.Serve(nil)
		a.membership.Close()
	}
	if err := a.front.Close(); err != nil {
		a.o.Logger.Debug("close of the front", "error", err)
	}
}
