package membership

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/pause"
)

const (
	// listPause is the time between two looks at the list of members, pollPause between two questions whether they are ready.
	listPause = time.Second
	pollPause = 500 * time.Millisecond
)

// A Member is a node of the cluster as this one knows it.
type Member struct {
	Addr string
	ID   record.NodeID
	// Voter is false while the node joins.
	Voter bool
	// Up says that this node reaches it, Ready that it has said to be ready.
	Up, Ready bool
	// Since is when it was reached, or lost; zero for this node. RTT and Clock are those of [peer.Status].
	Since      time.Time
	RTT, Clock time.Duration
}

// Members returns the nodes of the cluster in order of their addresses, as they were known last.
func (m *Membership) Members() []Member {
	statuses := map[string]peer.Status{}
	for _, s := range m.o.Front.Statuses() {
		statuses[s.Addr] = s
	}
	self := m.o.Front.Addr()
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Member, 0, len(m.peers))
	for _, p := range m.peers {
		s := statuses[p.Address]
		one := Member{Addr: p.Address, ID: record.NodeID(p.ID), Voter: p.Voter, Up: s.Up, Ready: s.Up && m.serving[p.Address], Since: s.Since, RTT: s.RTT, Clock: s.Clock}
		if p.Address == self {
			one.Up, one.Ready = true, m.ready && !m.aside
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Addr, b.Addr) })
	return all
}

// IDOf returns the number of the node at an address, 0 if none is known.
func (m *Membership) IDOf(addr string) record.NodeID {
	for _, one := range m.Members() {
		if one.Addr == addr {
			return one.ID
		}
	}
	return 0
}

// AddrOf returns the address of a node, "" if none is known.
func (m *Membership) AddrOf(id record.NodeID) string {
	for _, one := range m.Members() {
		if one.ID == id {
			return one.Addr
		}
	}
	return ""
}

func (m *Membership) setPeers(peers []etcdlog.Peer) {
	slices.SortFunc(peers, func(a, b etcdlog.Peer) int { return strings.Compare(a.Address, b.Address) })
	m.mu.Lock()
	same := slices.Equal(m.peers, peers)
	m.mu.Unlock()
	if !same {
		m.update(func() { m.peers = peers })
		m.keep()
	}
}

// keep has the front stay connected with all members, with those that ask to join, and before any member is known with
// the nodes of the list.
func (m *Membership) keep() {
	m.mu.Lock()
	var nodes []string
	for _, p := range m.peers {
		nodes = append(nodes, p.Address)
	}
	if len(nodes) == 0 {
		nodes = slices.Clone(m.o.List)
	}
	for node, since := range m.guests {
		if age := m.o.Now().Sub(since); age > guestTime || age < 0 {
			delete(m.guests, node)
		} else {
			nodes = append(nodes, node)
		}
	}
	m.mu.Unlock()
	m.o.Front.Keep(nodes)
}

// Run keeps the connections to the members, and tells setUp which of them are up whenever that changes: this node if it has
// a vote, and those that have one, are reached and are ready. It returns when ctx ends, or with ErrRemoved when this
// node was removed.
func (m *Membership) Run(ctx context.Context, setUp func([]record.NodeID)) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { m.follow(ctx) })
	all.Go(func() { m.poll(ctx) })
	var last []record.NodeID
	holding := hold{founders: fileOf(m).Forming}
	for {
		_, upChanged := m.o.Front.Up()
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		again := holding.look(m)
		if up := m.up(); again == nil && !slices.Equal(up, last) {
			setUp(up)
			last = up
		}
		select {
		case <-again:
		case <-upChanged:
		case <-changed:
		case <-m.etcd.Done():
			return m.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holdTime is how long a node of a cluster that was just founded waits for the others, once it is ready itself.
const holdTime = 10 * time.Second

// A hold has the nodes of a cluster that was just founded wait until all of them are ready. Otherwise the first one would become the home of everything, and give
// it away piece by piece as the others come.
type hold struct {
	founders []string
	since    time.Time // when this node was seen to be ready
}

// look returns nil if nothing is to be waited for, and else when to look again.
func (h *hold) look(m *Membership) <-chan time.Time {
	if h.founders == nil {
		return nil
	}
	ready, all := map[string]bool{}, true
	for _, one := range m.Members() {
		ready[one.Addr] = one.Voter && one.Ready
	}
	for _, node := range h.founders {
		all = all && ready[node]
	}
	now := m.o.Now()
	if h.since.IsZero() && ready[m.o.Front.Addr()] {
		h.since = now
	}
	if all || !h.since.IsZero() && now.Sub(h.since) >= holdTime {
		h.founders = nil
		return nil
	}
	return time.After(holdTime / 10)
}

// up are the nodes that may be homes. A node that is lost has to say again that it is ready. This node is one even if it is not ready
// yet, but not if it has stepped aside. Only where no node is left that is ready otherwise, those that have stepped aside count: all of them alike, or each of
// them would take everything from the others.
func (m *Membership) up() (nodes []record.NodeID) {
	self := m.o.Front.Addr()
	m.mu.Lock()
	aside, ready := m.aside, m.ready
	m.mu.Unlock()
	var spare []record.NodeID
	anyReady := false
	for _, one := range m.Members() {
		if !one.Up {
			m.mu.Lock()
			delete(m.serving, one.Addr)
			delete(m.asides, one.Addr)
			m.mu.Unlock()
		}
		isSelf := one.Addr == self
		switch {
		case !one.Voter:
		case isSelf && !aside || !isSelf && one.Ready:
			nodes = append(nodes, one.ID)
			anyReady = anyReady || one.Ready || isSelf && ready
		case isSelf || stepsAside(m, one.Addr):
			spare = append(spare, one.ID)
		}
	}
	if !anyReady {
		nodes = append(nodes, spare...)
	}
	return nodes
}

// stepsAside says whether a node has said that it is ready, and steps aside.
func stepsAside(m *Membership, node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asides[node]
}

// follow looks at the list of members again and again.
func (m *Membership) follow(ctx context.Context) {
	for {
		list, cancel := context.WithTimeout(ctx, callTime)
		peers, err := m.Log().Peers(list)
		cancel()
		if err == nil {
			m.setPeers(peers)
		}
		m.mu.Lock()
		guests := len(m.guests) > 0
		m.mu.Unlock()
		if guests {
			m.keep() // one may have gone
		}
		if pause.For(ctx, listPause) != nil {
			return
		}
	}
}

func (m *Membership) isServing(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serving[node]
}

// poll asks the nodes that are up whether they are ready.
func (m *Membership) poll(ctx context.Context) {
	for {
		up, changed := m.o.Front.Up()
		ready, asides, waiting := map[string]bool{}, map[string]bool{}, map[string]bool{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, node := range up {
			if node == m.o.Front.Addr() {
				continue
			}
			all.Go(func() {
				h, err := m.ask.hello(ctx, node)
				isOurs := h.Cluster == m.Cluster()
				is, aside := h.Ready && isOurs, h.Aside && isOurs
				if err != nil {
					is, aside = m.isServing(node), stepsAside(m, node) // one that is slow to answer is what it was, while it is connected
				}
				mu.Lock()
				defer mu.Unlock()
				ready[node], asides[node] = is, aside
				if h.Phase == waits {
					waiting[node] = true
				}
			})
		}
		all.Wait()
		m.mu.Lock()
		same := maps.Equal(m.serving, ready) && maps.Equal(m.asides, asides)
		m.waiting = waiting
		m.mu.Unlock()
		if !same {
			m.update(func() { m.serving, m.asides = ready, asides })
		}
		wait, cancel := context.WithTimeout(ctx, pollPause)
		select {
		case <-changed:
		case <-wait.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}
