//go:build !no_cluster

package etcdlog_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// ask asks a member for its version over one end of a connection.
func ask(c net.Conn) (*http.Response, error) {
	if _, err := io.WriteString(c, "GET /version HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(c), nil)
}

// TestHandedConnections: a member serves its peers on a connection that it is handed, under the conditions of its own listener, and ends it when it
// stops.
func TestHandedConnections(t *testing.T) {
	for name, withTLS := range map[string]bool{"in the clear": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			var files etcdlog.TLS
			if withTLS {
				files = certificates(t)
			}
			c := found(t, 1, func(c *members) { c.tls = files })
			m := c.lives[0].Member
			hand := func(config *tls.Config) net.Conn {
				here, there := tcpPair(t)
				m.Take(there)
				if !withTLS {
					return here
				}
				return tls.Client(here, config)
			}
			config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the member asks for a certificate, which is what counts here
			if withTLS {
				if answer, err := ask(hand(config)); err == nil {
					t.Errorf("a peer without a certificate is answered %s", answer.Status)
				}
				cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
				if err != nil {
					t.Fatal(err)
				}
				config = &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}} //nolint:gosec // see above
			}
			peer := hand(config)
			answer, err := ask(peer)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("a peer is answered %v, %v", answer, err)
			}
			m.Stop()
			if _, err := io.Copy(io.Discard, peer); err != nil {
				t.Logf("the connection ends with %v", err)
			}
			if _, err := ask(hand(config)); err == nil {
				t.Error("a member that has stopped takes a connection")
			}
		})
	}
}

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err == nil {
		there, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	return here, there
}
