package peer_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/pause"
)

// unhurried is between pings where no peer is to be taken for silent: a busy machine may stand still for seconds.
const unhurried = 10 * time.Second

// listen opens a front on loopback, which is closed with the test. It is unhurried if options do not say otherwise.
func listen(t testing.TB, o peer.Options) *peer.Front {
	t.Helper()
	o.Ping = cmp.Or(o.Ping, unhurried)
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Key.Fingerprint() == "none" {
		o.Key = key(t, textA)
	}
	if os.Getenv("PEER_DEBUG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	f, err := peer.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// pair opens two fronts, of which the first keeps the second.
func pair(t testing.TB, a, b peer.Options) (*peer.Front, *peer.Front) {
	t.Helper()
	to := listen(t, b)
	from := listen(t, a)
	from.Keep([]string{to.Addr()})
	waitUp(t, from, from.Addr(), to.Addr())
	return from, to
}

// waitUp waits until exactly these nodes are up.
func waitUp(t testing.TB, f *peer.Front, want ...string) {
	t.Helper()
	slices.Sort(want)
	limit := time.After(time.Minute)
	for {
		up, changed := f.Up()
		if slices.Equal(up, want) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%q are up, want %q: %+v", up, want, f.Statuses())
		}
	}
}

// until tries until it works.
func until(t testing.TB, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		if pause.For(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// fakeEtcd is a TLS server of its own that answers a line with the same.
type fakeEtcd struct {
	config *tls.Config
	all    sync.WaitGroup
}

// Take implements [peer.Etcd].
func (e *fakeEtcd) Take(c net.Conn) {
	e.all.Go(func() {
		t := tls.Server(c, e.config)
		_, _ = io.Copy(t, t)
		_ = t.Close()
	})
}

// newFakeEtcd returns one, and how it is known.
func newFakeEtcd(t *testing.T) (e *fakeEtcd, trust *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	files, err := key(t, textB).WriteFiles(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	e = &fakeEtcd{config: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}}
	t.Cleanup(e.all.Wait)
	return e, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, VerifyConnection: func(s tls.ConnectionState) error { //nolint:gosec // the test's own
		if !slices.Equal(s.PeerCertificates[0].Raw, cert.Certificate[0]) {
			return errors.New("this is not the fake's certificate")
		}
		return nil
	}}
}

func TestOtherConnectionsGoToEtcd(t *testing.T) {
	f := listen(t, peer.Options{})
	etcd, trust := newFakeEtcd(t)
	if _, err := tls.Dial("tcp", f.Addr(), trust); err == nil {
		t.Error("a connection goes to etcd before there is one")
	}
	f.PassTo(etcd)
	c, err := tls.Dial("tcp", f.Addr(), trust)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := strings.Repeat("x", 1<<20) + "\n"
	go func() { _, _ = io.WriteString(c, long) }()
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != long {
		t.Errorf("through the front come %d bytes, %v", len(line), err)
	}
	f.PassTo(nil)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to an etcd that has stopped is still open")
	}
}

// stranger is a connection whose first message asks for the protocol of the nodes.
func stranger(t *testing.T, f *peer.Front, change func(*tls.Config)) error {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{peer.Protocol}} //nolint:gosec // it attacks
	change(config)
	c, err := tls.Dial("tcp", f.Addr(), config)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	return err
}

// identity is the certificate of a node with a key.
func identity(t *testing.T, text string, now time.Time) tls.Certificate {
	t.Helper()
	files, err := key(t, text).WriteFiles(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOnlyNodesAreServed(t *testing.T) {
	f := listen(t, peer.Options{})
	tests := []struct {
		name, want string
		change     func(*tls.Config)
	}{
		{"no certificate", "certificate required", func(*tls.Config) {}},
		{"another key", "unknown certificate authority", func(c *tls.Config) {
			other := identity(t, textB, time.Now())
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other, nil }
		}},
		{"an old certificate", "expired", func(c *tls.Config) {
			c.Certificates = []tls.Certificate{identity(t, textA, time.Now().Add(-60*24*time.Hour))}
		}},
		{"TLS 1.2", "protocol version", func(c *tls.Config) {
			c.MaxVersion, c.Certificates = tls.VersionTLS12, []tls.Certificate{identity(t, textA, time.Now())}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := stranger(t, f, test.change); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("a stranger is told %v, want %q", err, test.want)
			}
		})
	}
	until(t, "no stranger is left", func() error {
		if n := f.Strangers(); n != 0 {
			return errors.New("there are some")
		}
		return nil
	})
}

// TestWhatIsNoHelloIsRefused: nothing, slowly, and too much, all without the key.
func TestWhatIsNoHelloIsRefused(t *testing.T) {
	etcd, _ := newFakeEtcd(t)
	f := listen(t, peer.Options{}.Impatient(300*time.Millisecond))
	f.PassTo(etcd)
	huge := "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("x", 70<<10) // a message of 16 MiB
	for name, text := range map[string]string{"nothing": "", "a beginning": "\x16\x03\x01", "plain text": "GET / HTTP/1.1\r\n\r\n", "huge": huge} {
		c, err := net.Dial("tcp", f.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		answer, _ := io.ReadAll(c)
		if len(answer) != 0 {
			t.Errorf("%s is answered with %q", name, answer)
		}
		_ = c.Close()
	}
}

// TestHandshakeWithEtcdMustGoOn: a first message that is good, and then nothing.
func TestHandshakeWithEtcdMustGoOn(t *testing.T) {
	etcd, _ := newFakeEtcd(t)
	f := listen(t, peer.Options{}.Impatient(300*time.Millisecond))
	f.PassTo(etcd)
	c, err := net.Dial("tcp", f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hello := &recorder{Conn: c}
	_ = tls.Client(hello, &tls.Config{InsecureSkipVerify: true}).Handshake() //nolint:gosec // it attacks
	if _, err := c.Write(hello.sent); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// recorder keeps what is sent, and hears nothing.
type recorder struct {
	net.Conn
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent = append(r.sent, b...)
	return len(b), nil
}

func (*recorder) Read([]byte) (int, error) { return 0, io.EOF }

// TestStrangersDoNotShutNodesOut fills the port from one host with connections that say nothing: they are closed in time.
func TestStrangersDoNotShutNodesOut(t *testing.T) {
	f := listen(t, peer.Options{}.Impatient(500*time.Millisecond))
	for range 2 * peer.MaxStrangers {
		c, err := net.Dial("tcp", f.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if n := f.Strangers(); n > peer.MaxStrangers {
		t.Errorf("%d strangers are inside", n)
	}
	node := listen(t, peer.Options{})
	node.Keep([]string{f.Addr()})
	waitUp(t, node, node.Addr(), f.Addr())
}

func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	start := time.Now()
	f := listen(t, peer.Options{Dir: dir, Now: func() time.Time { return start }})
	before, _ := os.ReadFile(f.Files().Cert)
	private, _ := os.ReadFile(f.Files().Key)
	if at := f.RenewAt(start.Add(9 * 24 * time.Hour)); !at.Equal(start) {
		t.Error("a certificate is renewed after nine days")
	}
	later := start.Add(11 * 24 * time.Hour)
	if at := f.RenewAt(later); !at.Equal(later) {
		t.Error("a certificate is not renewed after eleven days")
	}
	if after, _ := os.ReadFile(f.Files().Cert); string(after) == string(before) {
		t.Error("the file for etcd is still the old one")
	}
	if after, _ := os.ReadFile(f.Files().Key); string(after) != string(private) {
		t.Error("the private key has changed: it would not belong to the certificate for a moment")
	}
	if at := f.RenewAt(start); !at.Equal(start) {
		t.Error("a certificate of the future is kept after the clock was set back")
	}
	node := listen(t, peer.Options{})
	node.Keep([]string{f.Addr()})
	waitUp(t, node, node.Addr(), f.Addr())
}

// TestKeyIsChangedByRollingRestarts: nodes with both keys speak with nodes of either.
func TestKeyIsChangedByRollingRestarts(t *testing.T) {
	steps := []string{textA, textA + "\n" + textB, textB + "\n" + textA, textB}
	for i := range steps[1:] {
		a, b := listen(t, peer.Options{Key: key(t, steps[i])}), listen(t, peer.Options{Key: key(t, steps[i+1])})
		a.Keep([]string{b.Addr()})
		b.Keep([]string{a.Addr()})
		waitUp(t, a, a.Addr(), b.Addr())
		waitUp(t, b, a.Addr(), b.Addr())
	}
	a, b := listen(t, peer.Options{Key: key(t, textA)}), listen(t, peer.Options{Key: key(t, textB)})
	a.Keep([]string{b.Addr()})
	until(t, "another key is named", func() error {
		if s := a.Statuses()[0]; s.Up || s.Err == nil || !strings.Contains(s.Err.Error(), "another cluster key") {
			return errors.Join(errors.New("not yet"), s.Err)
		}
		return nil
	})
}
