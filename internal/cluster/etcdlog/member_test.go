//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// appendTo appends one record of some bytes to a shard, once, and returns what the log said.
func appendTo(ctx context.Context, m etcdlog.Member, s, bytes int) error {
	heads, err := m.Heads(ctx)
	if err != nil {
		return err
	}
	encoded, err := record.Record{Kind: record.Control, Previous: heads[s].Digest, Effect: make([]byte, bytes)}.Encode()
	if err != nil {
		return err
	}
	_, err = m.Append(ctx, s, heads[s], heads[s].After(1, encoded), encoded)
	return err
}

// TestFullLogRecovers fills the log: appends are refused for now before its file reaches the quota, and taken again when it was trimmed and
// defragmented. What a node has flushed is taken all the while.
func TestFullLogRecovers(t *testing.T) {
	c := found(t, 1, func(c *members) { c.quota = 32 << 20 })
	m, ctx := c.lives[0].Member, t.Context()
	c.until("an append to a full log is refused for now", func(ctx context.Context) error {
		err := appendTo(ctx, m, 3, 500<<10)
		for err == nil {
			err = appendTo(ctx, m, 3, 500<<10)
		}
		if errors.Is(err, shard.ErrAgain) {
			return nil
		}
		return err
	})
	if !m.Full() || m.Quota() != 32<<20 {
		t.Errorf("a full log is full: %v, and its quota is %d", m.Full(), m.Quota())
	}
	c.until("a node tells what it has flushed", func(ctx context.Context) error { return publish(ctx, m) })
	var below shard.Numbers
	below[3] = 1 << 40
	if err := m.Trim(ctx, below); err != nil {
		t.Fatalf("trim of a full log: %v", err)
	}
	before, _ := m.Size()
	c.until("the file is smaller", func(context.Context) error {
		if err := m.Defragment(); err != nil {
			return err
		}
		if now, used := m.Size(); now >= before/2 {
			return errors.New("it is not")
		} else if used > now {
			t.Errorf("%d bytes are used of %d", used, now)
		}
		return nil
	})
	// etcd counts its file only now and then, so that there may be an alarm all the same.
	c.until("the log is cleared", func(ctx context.Context) error { return clearLog(ctx, m) })
	c.until("a record is taken again", func(ctx context.Context) error { return appendTo(ctx, m, 3, 100) })
}

// publish tells once what a node has flushed, after alarms were cleared.
func publish(ctx context.Context, m etcdlog.Member) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return errors.Join(m.Clear(ctx), shard.Publish(ctx, m, shard.Flushed{Node: 1, Numbers: shard.Numbers{3: 7}}))
}

// clearLog clears alarms, and returns an error if there are some nevertheless.
func clearLog(ctx context.Context, m etcdlog.Member) error {
	if err := m.Clear(ctx); err != nil || !m.Full() {
		return err
	}
	return errors.New("the log is still full")
}

// TestAlarmsAreCleared has etcd raise an alarm, by what is put without a look at the room that there is.
func TestAlarmsAreCleared(t *testing.T) {
	c := found(t, 1, func(c *members) { c.quota = 8 << 20 })
	m, ctx := c.lives[0].Member, t.Context()
	headOf(c, 3)
	for err := error(nil); err == nil; {
		_, err = etcdlog.AppendToHead(m, ctx, 3, shard.Head{Revision: 1 << 40}, shard.Head{}, make([]byte, 500<<10))
	}
	c.until("an alarm is raised", func(ctx context.Context) error {
		if alarms := m.Raised(); len(alarms) != 1 || !alarms[0].Space || alarms[0].Member != m.ID() {
			return fmt.Errorf("there are the alarms %+v", alarms)
		}
		return nil
	})
	if err := m.SetFlushed(ctx, shard.Flushed{Node: 1}); !errors.Is(err, shard.ErrUnknown) {
		t.Errorf("a put after an alarm: %v, want ErrUnknown", err)
	}
	// What a node has flushed is taken by a log that is too large, once the alarm is cleared: etcd raises it again.
	c.until("a node tells what it has flushed", func(ctx context.Context) error { return publish(ctx, m) })
	if err := m.Trim(ctx, shard.Numbers{}); err != nil {
		t.Fatalf("trim of a full log: %v", err)
	}
	c.until("the file is smaller", func(context.Context) error {
		if err := m.Defragment(); err != nil {
			return err
		}
		if now, _ := m.Size(); now >= 4<<20 {
			return errors.New("it is not")
		}
		return nil
	})
	c.until("the log is cleared", func(ctx context.Context) error { return clearLog(ctx, m) })
	c.until("a record is taken again", func(ctx context.Context) error { return appendTo(ctx, m, 3, 100) })
}

// certificates writes an authority and a certificate for all nodes of a test.
func certificates(t *testing.T) etcdlog.TLS {
	t.Helper()
	dir := t.TempDir()
	files := etcdlog.TLS{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key")}
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func(c, by *x509.Certificate, public ed25519.PublicKey, key ed25519.PrivateKey) []byte {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, public, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	caPublic, caKey, _ := ed25519.GenerateKey(rand.Reader)
	public, key, _ := ed25519.GenerateKey(rand.Reader)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	write(files.CA, "CERTIFICATE", sign(ca, ca, caPublic, caKey))
	node := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"livetree-node"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	write(files.Cert, "CERTIFICATE", sign(node, ca, public, caKey))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(files.Key, "PRIVATE KEY", der)
	return files
}

// TestMembersComeAndGo speaks TLS between three members, moves the lead, and replaces a member that is lost: the new one has
// another id, and all that was appended. etcd wants five seconds of good health before it takes a new member.
func TestMembersComeAndGo(t *testing.T) {
	if !*long {
		t.Skip("takes some seconds: -long")
	}
	c := found(t, 3, func(c *members) { c.tls = certificates(t) })
	first := c.lives[0].Member
	c.until("a record is taken", func(ctx context.Context) error { return appendTo(ctx, first, 0, 10) })
	wantVoters(t, c, first, 3)

	c.until("the lead moves", func(ctx context.Context) error {
		leader := slices.IndexFunc(c.lives, func(l life) bool { return l.ID() == first.Leader() })
		if leader < 0 {
			return errors.New("no member leads")
		}
		if leader == 0 {
			return nil
		}
		return errors.Join(c.lives[leader].MoveLeader(ctx, first.ID()), errors.New("look again"))
	})

	lost := c.lives[2].ID()
	c.lives[2].end()
	etcdlog.Kill(c.lives[2].Member)
	if err := os.RemoveAll(filepath.Join(c.dir, "2")); err != nil {
		t.Fatal(err)
	}
	c.until("the lost one is removed", func(ctx context.Context) error { return first.Remove(ctx, lost) })
	var id uint64
	c.until("a learner is added", func(ctx context.Context) (err error) {
		id, err = first.AddLearner(ctx, c.fronts[2].addr())
		return err
	})
	c.lives[2] = c.start(2, c.addresses(3), false)
	c.until("it gets its vote", func(ctx context.Context) error { return first.Promote(ctx, id) })
	wantVoters(t, c, first, 3)
	if again := c.lives[2].ID(); again == lost || again != id {
		t.Errorf("the new member has the id %x, the lost one had %x, and %x was given", again, lost, id)
	}
	c.until("the new member has the record", func(ctx context.Context) error {
		page, err := c.lives[2].Page(ctx, 0, 1)
		if err == nil && len(page.Entries) != 1 {
			err = errors.New("the page is empty")
		}
		return err
	})
}

func wantVoters(t *testing.T, c *members, m etcdlog.Member, n int) {
	t.Helper()
	c.until("members are listed", func(ctx context.Context) error {
		peers, err := m.Peers(ctx)
		if err != nil {
			return err
		}
		if len(peers) != n {
			return errors.New("not all are listed")
		}
		for _, p := range peers {
			if !p.Voter || !p.Started || !slices.Contains(c.addresses(n), p.Address) {
				return errors.New("not all vote")
			}
		}
		return nil
	})
}
