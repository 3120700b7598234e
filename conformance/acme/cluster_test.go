package acme

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A cluster is three nodes with the same certificates.
type cluster struct {
	nodes []*server
	data  []string
	peers []string // by which the nodes reach each other
}

// startCluster starts three nodes. The authority asks the last one.
func startCluster(t *testing.T, authority *pebble) *cluster {
	t.Helper()
	dir := t.TempDir()
	key, err := exec.Command(livetreeBinary, "cluster", "key").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{nodes: make([]*server, 3), peers: []string{freeAddr(t), freeAddr(t), freeAddr(t)}}
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i, addr := range []string{freeAddr(t), freeAddr(t), authority.tlsAddr} {
		c.data = append(c.data, filepath.Join(dir, string(rune('1'+i))))
		flags := []string{
			"--data", c.data[i], "--addr", addr, "--admin-addr", "127.0.0.1:0", "--log-level", "ERROR",
			"--cluster", strings.Join(c.peers, ","), "--cluster-addr", c.peers[i], "--cluster-key", filepath.Join(dir, "key"),
			"--acme-domain", domain, "--acme-directory", authority.directory, "--acme-ca", authority.caFile,
		}
		all.Go(func() { c.nodes[i], errs[i] = start(t, flags...) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// home returns the node that orders.
func (c *cluster) home(t *testing.T) int {
	t.Helper()
	out, err := exec.Command(livetreeBinary, "cluster", "status", "--json", "--data", c.data[2]).Output()
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Shards []struct{ Leader string } }
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatal(err)
	}
	for i, peer := range c.peers {
		if peer == status.Shards[0].Leader {
			return i
		}
	}
	t.Fatalf("no node is the home: %s", out)
	return 0
}

// shown waits until nodes show one certificate of the authority that is not another one.
func shown(t *testing.T, authority *pebble, not *x509.Certificate, nodes ...*server) *x509.Certificate {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		var leaf *x509.Certificate
		same := true
		for _, n := range nodes {
			conn, err := tls.Dial("tcp", n.addr, &tls.Config{ServerName: domain, RootCAs: authority.issuers})
			if err != nil {
				same = false
				break
			}
			cert := conn.ConnectionState().PeerCertificates[0]
			_ = conn.Close()
			same = same && (leaf == nil || cert.Equal(leaf)) && (not == nil || !cert.Equal(not))
			leaf = cert
		}
		if same {
			return leaf
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes do not show one certificate; pebble says\n%s", authority.log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestCluster: one node orders a certificate, for which the authority asks another, and all show it. When the node that has ordered it is killed, another
// renews it.
func TestCluster(t *testing.T) {
	authority := startPebbleFor(t, 2*time.Minute)
	c := startCluster(t, authority)
	first := shown(t, authority, nil, c.nodes...)
	issued := func() int { return strings.Count(authority.log.String(), "Issued certificate serial") }
	if n := issued(); n != 1 {
		t.Errorf("%d certificates were issued, want one for all nodes", n)
	}
	home := c.home(t)
	if home == 2 { // which the authority asks
		if out, err := exec.Command(livetreeBinary, "cluster", "move", c.peers[0], "--data", c.data[2]).CombinedOutput(); err != nil {
			t.Fatalf("cluster move: %v %s", err, out)
		}
		home = 0
	}
	if err := c.nodes[home].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.nodes[home].Wait()
	shown(t, authority, first, c.nodes[1-home], c.nodes[2])
	if n := issued(); n != 2 {
		t.Errorf("%d certificates were issued, want the second by the next home", n)
	}
}
