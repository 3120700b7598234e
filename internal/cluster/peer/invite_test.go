package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// A lockedBuffer takes what several goroutines log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// takesOne is an inviter that takes the guest of one code, once.
func takesOne(code *peer.Code) peer.Inviter {
	used := false
	var mu sync.Mutex
	return func(_ context.Context, g peer.Guest) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if used || g.Invite != code.ID || !bytes.Equal(g.Secret, code.Secret[:]) {
			return nil, &peer.Refused{Text: "not good"}
		}
		used = true
		return []string{"10.0.0.1:9100", "10.0.0.2:9100"}, nil
	}
}

func TestCodes(t *testing.T) {
	code := peer.NewCode(key(t, textA), []string{"10.0.0.1:9100", "[::1]:9100", "db.example.com:9100"})
	text := code.Text()
	read, err := peer.ParseCode(" " + text + "\n")
	if err != nil || read.ID != code.ID || read.Secret != code.Secret || read.Authority != code.Authority || !slices.Equal(read.Addrs, code.Addrs) {
		t.Errorf("%s is read as %+v, %v", text, read.Addrs, err)
	}
	if strings.Contains(text, "\n") || !peer.IsCode(text) {
		t.Errorf("%q is not a line that begins as a code", text)
	}
	for _, bad := range []string{"", "x", text[:len(text)-1], text[:40], strings.Replace(text, text[30:31], "~", 1), text + "AAAA", strings.Repeat("A", 1<<20), "livetree-join-"} {
		if _, err := peer.ParseCode(bad); err == nil {
			t.Errorf("%.60q is read as a code", bad)
		} else if len(bad) > 20 && strings.Contains(err.Error(), bad[15:20]) {
			t.Errorf("the error shows the code: %v", err)
		}
	}
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %x", code, code, code, code, code)} {
		if strings.Contains(shown, fmt.Sprintf("%x", code.Secret[:4])) || !strings.Contains(shown, code.ID) {
			t.Errorf("a code shows itself as %s", shown)
		}
	}
}

// FuzzCode reads any text as a code.
func FuzzCode(f *testing.F) {
	f.Add("livetree-join-")
	f.Add("livetree-join-AQEBAQEBAQEB")
	f.Fuzz(func(t *testing.T, text string) {
		code, err := peer.ParseCode(text)
		if err != nil {
			return
		}
		if again, err := peer.ParseCode(code.Text()); err != nil || again.Secret != code.Secret {
			t.Errorf("%q is written as another code: %v", text, err)
		}
	})
}

// TestRedeem gives a new node the key, once; the first address of the code does not answer.
func TestRedeem(t *testing.T) {
	f := listen(t, peer.Options{})
	code := peer.NewCode(key(t, textA), []string{"127.0.0.1:1", f.Addr()})
	if _, err := peer.Redeem(t.Context(), code, "10.0.0.3:9100", time.Now); err == nil || !strings.Contains(err.Error(), "not ready to invite") {
		t.Errorf("before there is an inviter: %v", err)
	}
	f.HandleInvite(takesOne(&code))
	w, err := peer.Redeem(t.Context(), code, "10.0.0.3:9100", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := peer.ParseKey(w.Key); err != nil || got.Fingerprint() != key(t, textA).Fingerprint() || len(w.Nodes) != 2 {
		t.Errorf("a guest is given %v and %q, %v", got, w.Nodes, err)
	}
	_, err = peer.Redeem(t.Context(), code, "10.0.0.3:9100", time.Now)
	if _, refused := errors.AsType[*peer.Refused](err); !refused {
		t.Errorf("the second time: %v", err)
	}
}

// TestRedeemOfAnotherCluster: a guest tells its secret to none but a node of the cluster that has invited it.
func TestRedeemOfAnotherCluster(t *testing.T) {
	f := listen(t, peer.Options{Key: key(t, textB)})
	var asked atomic.Bool
	f.HandleInvite(func(context.Context, peer.Guest) ([]string, error) { asked.Store(true); return []string{"a:1"}, nil })
	code := peer.NewCode(key(t, textA), []string{f.Addr()})
	if _, err := peer.Redeem(t.Context(), code, "10.0.0.3:9100", time.Now); err == nil || !strings.Contains(err.Error(), "no node of the cluster that the invitation is of") {
		t.Errorf("at a node of another cluster: %v", err)
	}
	if asked.Load() {
		t.Error("a node of another cluster was told the secret")
	}
}

// guestConn makes a connection as a guest does that trusts everybody.
func guestConn(t *testing.T, f *peer.Front) (c *tls.Conn) {
	t.Helper()
	until(t, "a guest is connected", func() (err error) { // on a busy machine one that is honest may be too slow
		c, err = tls.Dial("tcp", f.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{peer.InviteProtocol}, MinVersion: tls.VersionTLS13}) //nolint:gosec // an attacker's
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func message(size uint32, text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, size), text...)
}

// TestGuestsThatAttack: what is no question is refused without being judged, what is slow or too much is cut, and the guest that was invited gets
// in all the same. Nothing is held in the end.
func TestGuestsThatAttack(t *testing.T) {
	log := &lockedBuffer{}
	f := listen(t, peer.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}.Impatient(300*time.Millisecond))
	code := peer.NewCode(key(t, textA), []string{f.Addr()})
	var judged atomic.Int64
	take := takesOne(&code)
	f.HandleInvite(func(ctx context.Context, g peer.Guest) ([]string, error) { judged.Add(1); return take(ctx, g) })
	for name, sent := range map[string][]byte{
		"nothing": nil, "garbage": []byte("GET / HTTP/1.1\r\n\r\n"), "huge": message(1<<31, "{}"), "cut short": message(100, `{"invite":`),
		"no JSON": message(4, "\x00\x01\x02\x03"), "a list": message(2, "[]"), "a number for a text": message(12, `{"invite":1}`),
	} {
		c := guestConn(t, f)
		_, _ = c.Write(sent)
		if answer, _ := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("%s is answered with %d bytes", name, len(answer))
		}
	}
	if judged.Load() > 0 {
		t.Errorf("%d guests that asked nothing were judged", judged.Load())
	}
	// A guest is no node: what follows its question is not read, and no call is.
	c := guestConn(t, f)
	_, _ = c.Write(append(message(16, `{"invite":"none"`), []byte("}")...))
	if answer, _ := io.ReadAll(c); strings.Contains(string(answer), "key") {
		t.Errorf("a guest with a broken question is answered %q", answer)
	}
	// As many as one host may have stand there and say nothing: they are cut, and the guest comes again until it gets in.
	for range peer.MaxStrangers {
		c, err := net.Dial("tcp", f.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	until(t, "the guest that was invited", func() error {
		_, err := peer.Redeem(t.Context(), code, "10.0.0.3:9100", time.Now)
		return err
	})
	until(t, "the strangers are gone", func() error {
		if n := f.Strangers(); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	if text := log.String(); strings.Contains(text, textA[:8]) || strings.Contains(text, code.Text()) {
		t.Error("the log shows a secret")
	}
}

// TestGuestsAreNoNodes: without a certificate a guest gets neither calls nor etcd, whatever else it asks for in its handshake.
func TestGuestsAreNoNodes(t *testing.T) {
	f := listen(t, peer.Options{})
	f.Handle("secret", func(context.Context, string, []byte) ([]byte, error) { t.Error("a guest was heard"); return nil, nil })
	c, err := tls.Dial("tcp", f.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{peer.InviteProtocol, peer.Protocol}, MinVersion: tls.VersionTLS13}) //nolint:gosec // an attacker's
	if err == nil {
		_, _ = c.Write(message(2, "{}"))
		if answer, _ := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("a guest that also asks for the wire of nodes is answered %q", answer)
		}
		_ = c.Close()
	}
}
