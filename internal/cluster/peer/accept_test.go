package peer

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestStrangersOfManyHosts: they take all places, and a host from which a node has come still finds one.
func TestStrangersOfManyHosts(t *testing.T) {
	var d doors
	d.know("10.0.0.1")
	for i := range 2 * maxStrangers {
		got := d.enter(&d.strangers, fmt.Sprint("10.1.0.", i%8), maxStrangers, maxStrangersOfHost)
		if want := i < maxStrangers; got != want {
			t.Fatalf("stranger %d is let in: %v", i, got)
		}
	}
	if d.enter(&d.strangers, "10.0.0.2", maxStrangers, maxStrangersOfHost) {
		t.Error("there is room for one stranger more")
	}
	for i := range maxStrangersOfHost + 1 {
		if got := d.enter(&d.strangers, "10.0.0.1", maxStrangers, maxStrangersOfHost); got != (i < maxStrangersOfHost) {
			t.Errorf("connection %d of a known host is let in: %v", i, got)
		}
	}
	for i := range maxStrangers {
		d.leave(&d.strangers, fmt.Sprint("10.1.0.", i%8))
	}
	if !d.enter(&d.strangers, "10.0.0.2", maxStrangers, maxStrangersOfHost) || len(d.strangers.ofHost) != 2 {
		t.Errorf("after the strangers have gone there are %v", d.strangers)
	}
}

// fromAddr is a connection from an address.
type fromAddr struct {
	net.Conn
	addr string
}

func (c fromAddr) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.addr)
	if err != nil {
		panic(err)
	}
	return addr
}

// TestHostOf: who can choose among addresses is one host.
func TestHostOf(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:7": "10.0.0.1", "[::ffff:10.0.0.1]:7": "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::", "[2001:db8:1:2::9]:8": "2001:db8:1:2::",
	} {
		if got := hostOf(fromAddr{addr: addr}); got != want {
			t.Errorf("hostOf(%s) = %s, want %s", addr, got, want)
		}
	}
}

// TestBrokenHandshakes: what is logged of a handshake that fails blames the key only if that can be the reason.
func TestBrokenHandshakes(t *testing.T) {
	for _, test := range []struct {
		err   error
		isKey bool
	}{
		{io.EOF, false},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, false},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(48)}, true},
	} {
		if text := explainRefused(test.err).Error(); strings.Contains(text, "another cluster key") != test.isKey {
			t.Errorf("of %v is said: %s", test.err, text)
		}
	}
}
