package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// joinRequest asks for a place among the members.
type joinRequest struct {
	Cluster string `json:"cluster"`
	Process string `json:"process"`
	// ID is the place that this process was given before, 0 if none.
	ID uint64 `json:"id,omitempty"`
	// Known is the newest level that it can apply.
	Known uint16 `json:"known,omitempty"`
}

type joinAnswer struct {
	ID      uint64   `json:"id"`
	Members []string `json:"members"`
}

// join makes this node a member without a vote. What fails is tried again.
func (m *Membership) join(ctx context.Context, v verdict) (wait string, err error) {
	m.update(func() { m.phase, m.promised = joins, "" })
	if m.file.Cluster == "" || m.file.Forming == nil && v.forming != nil {
		if err := m.writeFile(file{Cluster: v.cluster, Forming: v.forming, Level: v.level}); err != nil {
			return "", err
		}
	}
	if !m.hasStore {
		if wait, err := m.fetch(ctx, v.via); wait != "" || err != nil {
			return wait, err
		}
	}
	var place joinAnswer
	for _, node := range v.via {
		if place, err = m.askPlace(ctx, node); err == nil {
			break
		}
		wait = fmt.Sprintf("for %s to take it as a member: %v", node, err)
	}
	if err != nil {
		return wait, nil
	}
	m.learner = place.ID
	if err := m.start(ctx, place.Members, false); err != nil {
		if HasLog(m.o.Data) || errors.Is(err, etcdlog.ErrLeftOut) {
			return "", err
		}
		// A member that was asked has not learned of this one yet, or the members have changed meanwhile.
		m.o.Logger.Debug("etcd does not start yet", "error", err)
		return "for all members to learn of it", os.RemoveAll(LogDir(m.o.Data))
	}
	m.o.Logger.Info("this node has joined a cluster", "cluster", m.file.Cluster, "member", fmt.Sprintf("%x", place.ID))
	return "", nil
}

func (m *Membership) askPlace(ctx context.Context, node string) (a joinAnswer, err error) {
	body, err := json.Marshal(joinRequest{Cluster: m.file.Cluster, Process: m.process, ID: m.learner, Known: m.o.Known})
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	if body, err = m.o.Front.Call(ctx, node, joinCall, body); err == nil {
		err = json.Unmarshal(body, &a)
	}
	return a, err
}

// takeGuest gives a node a place among the members. If its address has one already, that member is lost: the node at
// that address says so itself, over a connection that this node makes.
func (m *Membership) takeGuest(ctx context.Context, from string, body []byte) ([]byte, error) {
	var r joinRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("a request that cannot be read: %w", err)
	}
	h := m.hello()
	if h.Phase != isMember || h.Cluster != r.Cluster {
		return nil, fmt.Errorf("this node is no member of the cluster %q", r.Cluster)
	}
	if r.Known < h.Level {
		return nil, fmt.Errorf("the cluster is at level %d, and the node knows levels up to %d: start it with the version that the others have", h.Level, r.Known)
	}
	select {
	case m.joins <- struct{}{}:
		defer func() { <-m.joins }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	peers, err := m.Log().Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("the members are not known: %w", err)
	}
	if err := m.meet(ctx, from, r); err != nil {
		return nil, err
	}
	a := joinAnswer{Members: []string{from}}
	for _, p := range peers {
		switch {
		case p.Address != from:
			a.Members = append(a.Members, p.Address)
		case p.ID == r.ID:
			a.ID = p.ID // it was given to this very process, which has not started etcd yet
		default:
			m.o.Logger.Warn("a member is replaced: its node has lost its log", "node", from, "member", fmt.Sprintf("%x", p.ID), "started", p.Started)
			if err := m.Log().Remove(ctx, p.ID); err != nil {
				return nil, fmt.Errorf("the member that it replaces is not removed: %w", err)
			}
		}
	}
	if a.ID == 0 {
		if a.ID, err = m.Log().AddLearner(ctx, from); err != nil {
			return nil, fmt.Errorf("it gets no place yet: %w", err)
		}
	}
	m.o.Logger.Info("a node joins", "node", from, "member", fmt.Sprintf("%x", a.ID))
	return json.Marshal(a)
}

// guestTime is how long a node that asks to join is kept as a peer before it is a member.
const guestTime = time.Minute

// meet asks the node at an address whether it is the process that wants to join, and runs no etcd.
func (m *Membership) meet(ctx context.Context, node string, r joinRequest) error {
	m.mu.Lock()
	if len(m.guests) >= maxList && m.guests[node].IsZero() {
		m.mu.Unlock()
		return errors.New("too many nodes ask to join")
	}
	m.guests[node] = m.o.Now()
	m.mu.Unlock()
	m.keep()
	h, err := m.ask.hello(ctx, node)
	switch {
	case err != nil:
		return fmt.Errorf("it is not reached from %s: %w", m.o.Front.Addr(), err)
	case h.Process != r.Process:
		return fmt.Errorf("another process answers at %s: two nodes have this address", node)
	case h.Phase != joins || h.Cluster != r.Cluster:
		return fmt.Errorf("the node at %s does not join", node)
	}
	return nil
}
