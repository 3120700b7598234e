package trust_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/freeaddr"
)

// Relays stand between the nodes of a cluster, one before each, and hold up what a node that is cut off sends or is sent.
// Nothing is closed: bytes wait, as in a network that loses them and whose machines send them again. Clients of the nodes
// are not held up.
type relays struct {
	nodes []*process

	mu      sync.Mutex
	isCut   map[int]bool // nodes that are cut off
	changed *sync.Cond
	isOver  bool
}

// startRelayed runs a cluster of empty nodes that reach each other by relays.
func startRelayed(t *testing.T, flags ...string) (*cluster, *relays) {
	t.Helper()
	addrs := freeaddr.List(t, 6)
	c := &cluster{addrs: addrs[:3], sight: &sightings{}}
	c.makeNodes(t, addrs[3:], flags)
	r := &relays{nodes: c.nodes, isCut: map[int]bool{}}
	r.changed = sync.NewCond(&r.mu)
	for i := range c.nodes {
		l, err := net.Listen("tcp", addrs[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go r.serve(l, i, addrs[3+i])
	}
	t.Cleanup(r.end)
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	return c, r
}

// cut holds up what a node sends to other nodes and is sent by them, or lets it through.
func (r *relays) cut(node int, isCut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut[node] = isCut
	r.changed.Broadcast()
}

func (r *relays) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOver = true
	r.changed.Broadcast()
}

// pass returns when bytes may go between two nodes, and reports whether the relay goes on.
func (r *relays) pass(from, to int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for from != to && (r.isCut[from] || r.isCut[to]) && !r.isOver {
		r.changed.Wait()
	}
	return !r.isOver
}

// serve relays the connections to one node, until the listener is closed.
func (r *relays) serve(l net.Listener, to int, addr string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			from, err := r.sender(in)
			if err != nil || !r.pass(from, to) {
				return // it has gone, or the test has
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			go func() {
				r.pump(out, in, from, to)
				_ = out.Close()
			}()
			r.pump(in, out, from, to)
			_ = out.Close()
		}()
	}
}

// pump copies what one side sends until either is closed, or the test ends.
func (r *relays) pump(into io.WriteCloser, from io.Reader, a, b int) {
	defer into.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !r.pass(a, b) || err != nil {
			return
		}
		if _, err := into.Write(buf[:n]); err != nil {
			return
		}
	}
}

// sender returns the node that has opened a connection, by the socket that has the other end.
func (r *relays) sender(conn net.Conn) (int, error) {
	inode, err := inodeOf(conn.RemoteAddr().(*net.TCPAddr).Port, conn.LocalAddr().(*net.TCPAddr).Port)
	if err != nil {
		return 0, err
	}
	for i, p := range r.nodes {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid()))
		if err != nil {
			return 0, err
		}
		for _, file := range files {
			if at, err := os.Readlink(file); err == nil && at == "socket:["+inode+"]" {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("no node has socket %s", inode)
}

// inodeOf returns the socket of a connection from one port of this machine to another.
func inodeOf(from, to int) (string, error) {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && portOf(fields[1]) == from && portOf(fields[2]) == to {
			return fields[9], nil
		}
	}
	return "", fmt.Errorf("no connection from port %d to %d", from, to)
}

func portOf(field string) int {
	_, hex, _ := strings.Cut(field, ":")
	port, _ := strconv.ParseInt(hex, 16, 32) // 0 in the head of the table
	return int(port)
}
