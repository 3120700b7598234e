//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestFullLogRecovers fills the log to its quota: what becomes of an append is not known then, since one that etcd says it has
// no space for may be in the log. Records are taken again when it was trimmed, defragmented and the alarm ended.
func TestFullLogRecovers(t *testing.T) {
	c := found(t, 1, func(c *members) { c.quota = 8 << 20 })
	m, ctx := c.lives[0].Member, t.Context()
	var taken uint64
	c.until("an append finds no space", func(ctx context.Context) error {
		for {
			taken = headOf(c, 3).Number + 1
			err := appendTo(ctx, m, 3, 500<<10)
			switch {
			case err == nil:
			case !strings.Contains(err.Error(), "space exceeded"):
				return err
			case !errors.Is(err, shard.ErrUnknown):
				t.Errorf("an append to a full log: %v, want ErrUnknown", err)
				return nil
			default:
				return nil
			}
		}
	})
	// It is refused before it is proposed, or after it has taken effect.
	head := headOf(c, 3)
	t.Logf("the log has %d records, and there was no space for the one with number %d", head.Number, taken)
	c.until("an alarm is raised", func(ctx context.Context) error {
		alarms, err := m.Alarms(ctx)
		if err == nil && len(alarms) == 0 {
			err = errors.New("none is")
		}
		return err
	})
	if err := appendTo(ctx, m, 3, 100); !errors.Is(err, shard.ErrUnknown) {
		t.Errorf("an append after an alarm: %v, want ErrUnknown", err)
	}
	if now := headOf(c, 3); now.Number != head.Number {
		t.Errorf("the log has %d records after an alarm, want %d", now.Number, head.Number)
	}
	var below shard.Numbers
	below[3] = 1 << 40
	if err := m.Trim(ctx, below); err != nil {
		t.Fatalf("trim of a full log: %v", err)
	}
	alarms, err := m.Alarms(ctx)
	if err != nil || len(alarms) != 1 || !alarms[0].Space || alarms[0].Member != m.ID() {
		t.Fatalf("the alarms of a full log are %+v, %v", alarms, err)
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
	if err := m.Disarm(ctx, alarms[0]); err != nil {
		t.Fatal(err)
	}
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
