//go:build !no_cluster

package etcdlog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

const (
	// requestBytes is etcd's bound on one request: a record, its keys and what stands around.
	requestBytes = 1536 << 10
	// maxLearners is how many members without a vote there may be: those of a cluster of three that is founded.
	maxLearners = 2
	// nameInCerts is the one name in the certificates of all nodes, so that addresses may change.
	nameInCerts = "livetree-node"
)

// Linked says whether this binary has etcd in it.
const Linked = true

// member implements [Member].
type member struct {
	etcd     *embed.Etcd
	client   *clientv3.Client
	election time.Duration
	// lead ends when another member leads.
	lead          atomic.Pointer[context.Context]
	heads         atomic.Pointer[knownHeads] // as they were read last; nil before that
	behind        *catchUp
	peers         *peers
	stop, stopped chan struct{}
	failed        chan error
	once          sync.Once
}

// Start starts the member of this node. It returns when etcd runs, not when it has found the others: that
// is when Heads answers. A member that joins is refused by a peer that has not learned of it yet: then it may be started again.
func Start(o Options) (Member, error) {
	o.Election = cmp.Or(o.Election, DefaultElection)
	o.Quota = cmp.Or(o.Quota, DefaultQuota)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var others differences
	behind := &catchUp{}
	c, err := configuration(o, &others, behind)
	if err != nil {
		return nil, err
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, others.judge(fmt.Errorf("start of etcd: %w", err))
	}
	behind.etcd.Store(e)
	served, err := servePeers(e)
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("start of etcd: %w", err)
	}
	m := &member{
		etcd: e, client: v3client.New(e.Server), election: o.Election, behind: behind, peers: served,
		stop: make(chan struct{}), stopped: make(chan struct{}), failed: make(chan error, 1),
	}
	m.lead.Store(new(context.Background()))
	go m.followLeader()
	return m, nil
}

func configuration(o Options, others *differences, behind *catchUp) (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name, c.Dir = memberName(o.Peer), o.Dir
	c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil
	scheme := "https"
	if o.TLS.Cert == "" {
		scheme = "http"
	}
	c.ListenPeerUrls = []url.URL{{Scheme: scheme, Host: o.Listen}}
	c.AdvertisePeerUrls = []url.URL{{Scheme: scheme, Host: o.Peer}}
	c.ClusterState, c.InitialClusterToken = embed.ClusterStateFlagExisting, o.Cluster
	if o.Founds {
		c.ClusterState = embed.ClusterStateFlagNew
	}
	c.ForceNewCluster = o.Alone
	var members []string
	for _, peer := range o.Members {
		members = append(members, memberName(peer)+"="+scheme+"://"+peer)
	}
	c.InitialCluster = strings.Join(members, ",")
	c.TickMs, c.ElectionMs = uint(o.Election.Milliseconds()/10), uint(o.Election.Milliseconds())
	c.PreVote, c.StrictReconfigCheck = true, true
	c.MaxRequestBytes, c.MaxLearners, c.QuotaBackendBytes = requestBytes, maxLearners, o.Quota
	c.CompactHashCheckTime = cmp.Or(o.CheckEvery, embed.DefaultCompactHashCheckTime)
	c.AutoCompactionRetention, c.SnapshotCatchUpEntries = "0", stepEntries
	c.EnableGRPCGateway, c.EnablePprof, c.EnableDistributedTracing = false, false, false
	if o.TLS.Cert != "" {
		c.PeerTLSInfo = transport.TLSInfo{
			CertFile: o.TLS.Cert, KeyFile: o.TLS.Key, TrustedCAFile: o.TLS.CA,
			ClientCertAuth: true, ServerName: nameInCerts, SkipClientSANVerify: true,
		}
		c.TlsMinVersion = "TLS1.3"
	}
	gates, ok := c.ServerFeatureGate.(featuregate.MutableFeatureGate)
	if !ok {
		return nil, fmt.Errorf("etcd's feature gates cannot be set")
	}
	if err := gates.SetFromMap(map[string]bool{"InitialCorruptCheck": true, "CompactHashCheck": true}); err != nil {
		return nil, err
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(&core{log: o.Log.With("component", "etcd"), others: others, behind: behind},
		zap.WithFatalHook(fatalHook{o.Fatal})))
	return c, nil
}

// followLeader ends the context of each lead when the next begins.
func (m *member) followLeader() {
	defer close(m.stopped)
	for {
		changed := m.etcd.Server.LeaderChangedNotify()
		ctx, cancel := context.WithCancel(context.Background())
		m.lead.Store(&ctx)
		select {
		case <-changed:
			cancel()
			continue
		case <-m.stop:
		case <-m.etcd.Server.StopNotify():
			// A removal is the only reason for which a server stops that was not asked to.
			m.failed <- ErrRemoved
		case err := <-m.etcd.Err():
			m.failed <- err
		}
		cancel()
		return
	}
}

// slowest is how many bytes etcd must take in a second, at least. What takes longer is sent again.
const slowest = 128 << 10

// bounded returns a context for a call with some bytes. It ends when the leader changes: a proposal on its way to a leader that died is lost in silence, and
// etcd says so only after seconds. It also ends after two election times and as long as etcd may take for the bytes. Without the
// latter a cluster that is too slow for a moment would be sent the same bytes again and again, and get ever slower.
func (m *member) bounded(ctx context.Context, bytes int) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, 2*m.election+time.Duration(bytes)*time.Second/slowest)
	stop := context.AfterFunc(*m.lead.Load(), cancel)
	return ctx, func() { stop(); cancel() }
}

func (m *member) Stop() {
	m.once.Do(func() {
		close(m.stop)
		<-m.stopped
		_ = m.client.Close()
		m.etcd.Close()
		m.peers.close()
	})
}

func (m *member) Addr() string { return m.etcd.Peers[0].Addr().String() }

func (m *member) Failed() <-chan error { return m.failed }

func (m *member) ID() uint64 { return uint64(m.etcd.Server.MemberID()) }

func (m *member) Leader() uint64 { return uint64(m.etcd.Server.Leader()) }

func (m *member) MoveLeader(ctx context.Context, to uint64) error {
	return m.etcd.Server.MoveLeader(ctx, m.ID(), to)
}

func (m *member) Peers(ctx context.Context) ([]Peer, error) {
	answer, err := m.client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	peers := make([]Peer, 0, len(answer.Members))
	for _, member := range answer.Members {
		p := Peer{ID: member.ID, Voter: !member.IsLearner, Started: member.Name != ""}
		if urls, err := types.NewURLs(member.PeerURLs); err == nil {
			p.Address = urls[0].Host
		}
		peers = append(peers, p)
	}
	return peers, nil
}

func (m *member) AddLearner(ctx context.Context, address string) (uint64, error) {
	config := m.etcd.Config()
	scheme := config.AdvertisePeerUrls[0].Scheme
	answer, err := m.client.MemberAddAsLearner(ctx, []string{scheme + "://" + address})
	if err != nil {
		return 0, err
	}
	return answer.Member.ID, nil
}

func (m *member) Promote(ctx context.Context, id uint64) error {
	_, err := m.client.MemberPromote(ctx, id)
	return err
}

func (m *member) Remove(ctx context.Context, id uint64) error {
	_, err := m.client.MemberRemove(ctx, id)
	return err
}
