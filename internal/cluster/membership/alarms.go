package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// This file acts on etcd's alarm that the file of a member is corrupt. The leader of the log raises it when a member has other data than most others have,
// which no disk or memory that is well comes to. It is raised for one member, but no member takes a record until it is disarmed.
//
// The first of the nodes that are well removes the member, and disarms the alarm: the others go on after a second or two. The node whose member
// it was ends with [ErrLogCorrupt]: it sets the files of its log aside, and joins as another member with the store that it has. Records are checked before
// they are applied, so the store has nothing of the damage.
//
// If removing the member would leave no majority, nothing is done until more nodes are up. If etcd cannot tell which member is wrong, an operator must: the
// alarm is disarmed once one of the members of that time was removed or replaced. If they still differ, etcd raises it again.

// ErrLogCorrupt says that the file of this node's log is not what the others have, so the cluster has removed its member. It may join as another.
var ErrLogCorrupt = errors.New("the log of this node is corrupt, and its member was removed")

// members is what an [Alarms] needs of this node's etcd.
type members interface {
	ID() uint64
	Raised() []etcdlog.Alarm
	Peers(ctx context.Context) ([]etcdlog.Peer, error)
	Disarm(ctx context.Context, a etcdlog.Alarm) error
}

// Alarms acts on the alarms of a cluster. One goroutine calls Look.
type Alarms struct {
	log members
	// up returns the nodes that are ready, and this one; remove removes a member, or says why not.
	up     func() []uint64
	remove func(ctx context.Context, id uint64) error
	logger *slog.Logger
	// then are the members at the time of the alarm that is of none of them; nil while there is no such alarm.
	then []uint64
	told map[etcdlog.Alarm]bool

	mu  sync.Mutex
	why map[uint64]string // why a member could not be removed
}

// NewAlarms returns what acts on the alarms of a node's cluster.
func NewAlarms(m *Membership) *Alarms {
	return &Alarms{
		log: m.Log(), logger: m.o.Logger,
		up: func() (ids []uint64) {
			for _, one := range m.Members() {
				if one.Voter && (one.Ready || one.Addr == m.o.Front.Addr()) {
					ids = append(ids, uint64(one.ID))
				}
			}
			return ids
		},
		remove: func(ctx context.Context, id uint64) error { return removeMember(ctx, m, id) },
	}
}

// removeMember removes a member by its id. Unlike [Membership.Remove] it never removes another one that has the same address by now.
func removeMember(ctx context.Context, m *Membership, id uint64) error {
	addr := ""
	peers, err := m.Log().Peers(ctx)
	if err != nil {
		return fmt.Errorf("the members are not known: %w", err)
	}
	for _, p := range peers {
		if p.ID == id {
			addr = p.Address
		}
	}
	if _, err := judgeRemoval(peers, upNodes(m), addr); err != nil {
		return err
	}
	return m.Log().Remove(ctx, id)
}

// Look does what is due. It costs nothing while there is no alarm.
func (a *Alarms) Look(ctx context.Context) error {
	raised := slices.DeleteFunc(a.log.Raised(), func(alarm etcdlog.Alarm) bool { return alarm.Space })
	a.tell(raised)
	if len(raised) == 0 {
		a.then = nil
		a.note(nil)
		return nil
	}
	peers, err := a.log.Peers(ctx)
	if err != nil {
		return fmt.Errorf("the members are not known: %w", err)
	}
	var ids []uint64
	for _, p := range peers {
		ids = append(ids, p.ID)
	}
	var errs []error
	why := map[uint64]string{}
	for _, alarm := range raised {
		if err := a.act(ctx, alarm, raised, ids); err != nil {
			why[alarm.Member] = err.Error()
			errs = append(errs, err)
		}
	}
	a.note(why)
	return errors.Join(errs...)
}

// act does what is due about one alarm.
func (a *Alarms) act(ctx context.Context, alarm etcdlog.Alarm, raised []etcdlog.Alarm, ids []uint64) error {
	switch {
	case alarm.Member == a.log.ID(): // the others act, and this node must know why it was removed
		return nil
	case alarm.Member == 0:
		if a.then == nil {
			a.then = ids
		}
		if !slices.ContainsFunc(a.then, func(id uint64) bool { return !slices.Contains(ids, id) }) {
			return nil
		}
	case !slices.Contains(ids, alarm.Member):
	case !a.isFirst(raised, ids):
		return nil
	default:
		if err := a.remove(ctx, alarm.Member); err != nil {
			return fmt.Errorf("the member with a corrupt log is not removed: %w", err)
		}
		a.logger.Error("the log of a node was corrupt: its member is removed, and the node joins again", "member", fmt.Sprintf("%x", alarm.Member))
	}
	if err := a.log.Disarm(ctx, alarm); err != nil {
		return fmt.Errorf("the alarm is not disarmed: %w", err)
	}
	if alarm.Member == 0 {
		a.then = nil // if it is raised again, another member has to go
	}
	return nil
}

// isFirst says whether this node is the one that acts: the first of those that are up and of which there is no alarm.
func (a *Alarms) isFirst(raised []etcdlog.Alarm, ids []uint64) bool {
	well := slices.DeleteFunc(a.up(), func(id uint64) bool { return etcdlog.IsCorrupt(raised, id) || !slices.Contains(ids, id) })
	return len(well) > 0 && slices.Min(well) == a.log.ID()
}

// tell logs each alarm once.
func (a *Alarms) tell(raised []etcdlog.Alarm) {
	now := map[etcdlog.Alarm]bool{}
	for _, alarm := range raised {
		now[alarm] = true
		switch {
		case a.told[alarm]:
		case alarm.Member == 0:
			a.logger.Error("the logs of nodes differ, and it is not known which is wrong: nothing can be written; livetree cluster status says what to do")
		case alarm.Member == a.log.ID():
			a.logger.Error("the log of this node is corrupt: nothing can be written until the others have removed it; it joins again by itself then; check its disk and its memory")
		default:
			a.logger.Error("the log of a node is corrupt: nothing can be written until it is removed", "member", fmt.Sprintf("%x", alarm.Member))
		}
	}
	a.told = now
}

func (a *Alarms) note(why map[uint64]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why = why
}

// Problems says what is wrong, and what to do. Nodes are named by addrOf. Any goroutine may call it.
func (a *Alarms) Problems(addrOf func(id uint64) string) (problems []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, alarm := range a.log.Raised() {
		name := addrOf(alarm.Member)
		if name == "" {
			name = "a node that was removed"
		}
		why := ""
		if text := a.why[alarm.Member]; text != "" {
			why = " (" + text + ")"
		}
		switch {
		case alarm.Space:
			problems = append(problems, fmt.Sprintf("the file of the log of %s is full, and nothing can be written: it is made smaller by itself; if this stays, start the nodes that are down, or give --cluster-log more", name))
		case alarm.Member == 0:
			problems = append(problems, "the logs of nodes differ, it is not known which is wrong, and nothing can be written: start the nodes that are down, which may tell; "+
				"else keep copies of all data directories, stop the node that you trust least, move its directory away, and start it")
		default:
			problems = append(problems, fmt.Sprintf("the log of %s is corrupt, and nothing can be written: it is removed and joins again by itself once a majority of the others is up; start those that are down%s", name, why))
		}
	}
	return problems
}

// ownFailure is why etcd has ended by itself, as this node sees it.
func ownFailure(member etcdlog.Member, err error) error {
	switch {
	case !errors.Is(err, etcdlog.ErrRemoved):
		return err
	case etcdlog.IsCorrupt(member.Raised(), member.ID()):
		return ErrLogCorrupt
	}
	return ErrRemoved
}
