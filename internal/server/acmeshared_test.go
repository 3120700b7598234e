package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/acmecert"
	"github.com/livetree/livetree/internal/cluster/databases"
)

// memoryNotes are the notes of a cluster in one process.
type memoryNotes struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (n *memoryNotes) Local(name string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.all[name]), nil
}

func (n *memoryNotes) Get(_ context.Context, name string) ([]byte, error) { return n.Local(name) }

func (n *memoryNotes) Swap(_ context.Context, name string, was, now []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !bytes.Equal(n.all[name], was) {
		return databases.ErrChanged
	}
	n.all[name] = bytes.Clone(now)
	if now == nil {
		delete(n.all, name)
	}
	return nil
}

// A sharer is a node with certificates that it shares with others.
type sharer struct {
	home atomic.Bool
	addr string
	log  *logBook
	stop func()
}

// startSharer runs a node that shows the certificates of a cluster.
func startSharer(t *testing.T, data string, authority *fakeACME, notes *memoryNotes, now func() time.Time) *sharer {
	t.Helper()
	n := &sharer{log: new(logBook)}
	certs, err := acmecert.New(authority.config(acmeDomain), filepath.Join(data, "acme"), "", n.log.logger())
	if err != nil {
		t.Fatal(err)
	}
	certs.Share(acmecert.Cluster{Notes: notes, IsHome: n.home.Load, Look: 5 * time.Millisecond, Now: now})
	own, err := newCertificates(data, certFiles{}, certNames{needed: []string{"localhost"}}, time.Now, n.log.logger())
	if err != nil {
		t.Fatal(err)
	}
	config := own.tlsConfig()
	certs.Join(config)
	listener, err := net.Listen("tcp", ownHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	n.addr = listener.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_ = tls.Server(conn, config).Handshake()
				_ = conn.Close()
			})
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	all.Go(func() { certs.Run(ctx) })
	n.stop = sync.OnceFunc(func() {
		cancel()
		_ = listener.Close()
		all.Wait()
	})
	t.Cleanup(n.stop)
	return n
}

// serial returns which certificate of the authority a node shows for the domain, or nothing.
func (n *sharer) serial(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", n.addr, &tls.Config{ServerName: acmeDomain, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	if leaf.Issuer.CommonName != "fake authority" {
		return ""
	}
	return leaf.SerialNumber.String() + leaf.NotAfter.String() + string(leaf.RawSubjectPublicKeyInfo)
}

// TestACMEOfACluster: the home orders one certificate, though the authority asks another node, and all show it. When the home has died, the
// next one renews it. A node that becomes a single server goes on with the files.
func TestACMEOfACluster(t *testing.T) {
	t.Parallel()
	authority := newFakeACME(t, "tls-alpn-01")
	notes := &memoryNotes{all: map[string][]byte{}}
	var late atomic.Bool
	now := func() time.Time {
		if late.Load() && authority.count() < 2 {
			return time.Now().Add(65 * 24 * time.Hour) // when a certificate of 90 days is to be renewed
		}
		return time.Now()
	}
	var nodes []*sharer
	last := t.TempDir()
	for _, data := range []string{t.TempDir(), t.TempDir(), last} {
		nodes = append(nodes, startSharer(t, data, authority, notes, now))
	}
	authority.reach(nodes[2].addr, "") // which is never the home
	nodes[0].home.Store(true)
	allShow := func(nodes []*sharer, than string) func() bool {
		return func() bool {
			first := nodes[0].serial(t)
			for _, n := range nodes {
				if n.serial(t) != first {
					return false
				}
			}
			return first != "" && first != than
		}
	}
	wait(t, "the certificate on all nodes", allShow(nodes, ""))
	if n := authority.count(); n != 1 {
		t.Errorf("%d certificates were ordered, want one", n)
	}
	was := nodes[0].serial(t)

	nodes[0].stop()
	nodes[1].home.Store(true)
	late.Store(true)
	wait(t, "the next certificate", allShow(nodes[1:], was))
	if n := authority.count(); n != 2 {
		t.Errorf("%d certificates were ordered, want the second one after the home has died", n)
	}
	for _, n := range nodes {
		if text := n.log.String(); strings.Contains(text, "PRIVATE") || strings.Contains(text, "no certificate could be got") {
			t.Errorf("the log of a node:\n%s", text)
		}
	}

	nodes[2].stop()
	single, err := acmecert.New(authority.config(acmeDomain), filepath.Join(last, "acme"), "", new(logBook).logger())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { single.Run(ctx) })
	wait(t, "the certificate of a single server", func() bool { return len(single.Ends()) == 1 })
	cancel()
	running.Wait()
	if n := authority.count(); n != 2 {
		t.Errorf("%d certificates were ordered, want that a node that becomes a single server keeps its own", n)
	}

	// And the other way: what a single server has, its cluster takes over.
	founder := startSharer(t, last, authority, &memoryNotes{all: map[string][]byte{}}, time.Now)
	founder.home.Store(true)
	wait(t, "the certificate of the founder", func() bool { return founder.serial(t) != "" })
	if n := authority.count(); n != 2 {
		t.Errorf("%d certificates were ordered, want that a cluster takes over what its founder has", n)
	}
}
