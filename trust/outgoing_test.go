//go:build unix

package trust_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestNoOutgoingConnection has a server start, serve, meet bad requests and bad
// tokens, and end, and sees that it talks to nobody who has not talked to it first:
// no telemetry, no look-up of what a token names. Its environment names a proxy,
// where anything that asks for the web would come.
func TestNoOutgoingConnection(t *testing.T) {
	t.Parallel()
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	caught := make(chan string, 1)
	go trapConnections(trap, caught)
	defer trap.Close()
	p := &process{dir: t.TempDir(), flags: []string{"--dev"}, env: []string{
		"HTTP_PROXY=http://" + trap.Addr().String(), "HTTPS_PROXY=http://" + trap.Addr().String(), "SENTRY_DSN=http://key@" + trap.Addr().String() + "/1",
	}}
	t.Cleanup(p.kill)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if _, err := outgoing(p.pid()); err != nil {
		t.Skip(err)
	}
	c := newClient(t, p, 2)
	rng, token, looks := newRand(seed(t), 0), tokenOf(t, "u"), 0
	for range rounds(20, 500, 5000) {
		for range 10 {
			if _, _, err := c.send(randomQuestion(rng, token+pick(rng, "", "x"))); err != nil {
				t.Fatal(err)
			}
		}
		found, err := outgoing(p.pid())
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			t.Fatalf("the server has outgoing connections: %q", found)
		}
		looks++
	}
	if err := p.terminate(); err != nil {
		t.Fatal(err)
	}
	select {
	case from := <-caught:
		t.Errorf("the server asked the proxy of its environment, from %s", from)
	default:
	}
	figures.Report(t, "outgoing", proof.Count("looks", looks), proof.Count("connections", 0))
}

// trapConnections tells of the first connection by which somebody asks a proxy for
// something. A TLS hello is no such thing: it is of a client of another test, whose
// server had this port before.
func trapConnections(trap net.Listener, caught chan<- string) {
	for {
		conn, err := trap.Accept()
		if err != nil {
			return
		}
		head := make([]byte, 1)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err = conn.Read(head)
		if isHello := err == nil && head[0] == 22; !isHello {
			caught <- conn.RemoteAddr().String()
			conn.Close()
			return
		}
		conn.Close()
	}
}

// outgoing returns the sockets of a process by which it talks to others of its own
// accord: connections whose local port is not one that it listens at, and all of
// UDP. It needs Linux.
func outgoing(pid int) ([]string, error) {
	own, err := socketsOf(pid)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
		if errors.Is(err, os.ErrNotExist) {
			continue // a system without IPv6
		}
		if err != nil {
			return nil, err
		}
		var ports []uint16
		var connections []string
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) < 10 || !own[f[9]] {
				continue
			}
			local, remote := parseAddr(f[1]), parseAddr(f[2])
			if isListening := f[3] == "0A"; isListening {
				ports = append(ports, local.Port())
			} else {
				connections = append(connections, local.String()+" to "+remote.String())
			}
		}
		found = append(found, slices.DeleteFunc(connections, func(c string) bool {
			local, _, _ := strings.Cut(c, " ")
			return slices.Contains(ports, netip.MustParseAddrPort(local).Port())
		})...)
	}
	return found, nil
}

// socketsOf returns the inodes of the sockets that a process has open.
func socketsOf(pid int) (map[string]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, file := range files {
		to, _ := os.Readlink(filepath.Join(dir, file.Name())) // it may be closed by now
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own, nil
}

// parseAddr reads an address as the kernel prints it: words of 32 bits in the byte
// order of the machine (little-endian on all that we test on), and a port.
func parseAddr(text string) netip.AddrPort {
	host, port, _ := strings.Cut(text, ":")
	raw, _ := hex.DecodeString(host)
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(raw)
	number, _ := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}
