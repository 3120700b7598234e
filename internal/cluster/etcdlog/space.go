//go:build !no_cluster

package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/shard"
)

func (m *member) Size() (file, used int64) {
	b := m.etcd.Server.Backend()
	return b.Size(), b.SizeInUse()
}

// Defragment goes around etcd's client, whose call needs what only a server with a client port has.
func (m *member) Defragment() error { return m.etcd.Server.Backend().Defrag() }

// Raised looks at what this member knows: etcd's own call would have all members agree.
func (m *member) Raised() (alarms []Alarm) {
	for _, a := range m.etcd.Server.Alarms() {
		alarms = append(alarms, Alarm{Member: a.MemberID, Space: a.Alarm == pb.AlarmType_NOSPACE})
	}
	return alarms
}

// Raise raises an alarm, as etcd does. It is for drills.
func Raise(ctx context.Context, m Member, a Alarm) error {
	kind := pb.AlarmType_CORRUPT
	if a.Space {
		kind = pb.AlarmType_NOSPACE
	}
	_, err := m.(*member).etcd.Server.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: a.Member, Alarm: kind})
	return err
}

func (m *member) Disarm(ctx context.Context, a Alarm) error {
	kind := pb.AlarmType_CORRUPT
	if a.Space {
		kind = pb.AlarmType_NOSPACE
	}
	_, err := m.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.Member, Alarm: kind})
	return err
}

func (m *member) Quota() int64 {
	config := m.etcd.Config()
	return config.QuotaBackendBytes
}

// errFull says that nothing was sent to etcd.
var errFull = fmt.Errorf("%w: its file is nearly as large as it may be", shard.ErrAgain)

// room returns an error if there is no room for more records and parts. The last eighth of the file is for what makes room again: at its quota, etcd
// would not even take what a node has flushed, and what became of a record would not be known.
func room(m *member) error {
	if file, _ := m.Size(); file >= m.Quota()/8*7 {
		return errFull
	}
	return nil
}

func (m *member) Full() bool {
	return room(m) != nil || slices.ContainsFunc(m.Raised(), func(a Alarm) bool { return a.Space })
}

func (m *member) Clear(ctx context.Context) error {
	var errs []error
	for _, a := range m.Raised() {
		if a.Space {
			errs = append(errs, m.Disarm(ctx, a))
		}
	}
	return errors.Join(errs...)
}

func (m *member) GiveLead(ctx context.Context) error {
	if m.Leader() != m.ID() {
		return nil
	}
	peers, err := m.Peers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range peers {
		if p.ID == m.ID() || !p.Voter || !p.Started {
			continue
		}
		// One that is down does not take it.
		ctx, cancel := context.WithTimeout(ctx, 2*m.election)
		err := m.MoveLeader(ctx, p.ID)
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
