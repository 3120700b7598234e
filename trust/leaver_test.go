//go:build unix

package trust_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// A connected is a client of the websocket whose server may go at any time.
type connected struct {
	*wiretest.Client
	tcp     *net.TCPConn
	session string
}

// connect connects by a websocket; config is nil for plain HTTP.
func connect(t testing.TB, addr, target string, config *tls.Config) (*connected, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	c := &connected{tcp: conn.(*net.TCPConn)}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	if c.Client, err = wiretest.Open(t, conn, wiretest.Dialing{Address: addr, Target: target}); err != nil {
		c.tcp.Close()
		return nil, err
	}
	hello, err := c.NextOrEnd()
	if err != nil {
		c.tcp.Close()
		return nil, err
	}
	_, rest, _ := strings.Cut(hello, `"s":"`)
	c.session, _, _ = strings.Cut(rest, `"`)
	return c, nil
}

// reset ends the connection as a machine does that forgets it.
func (c *connected) reset() {
	_ = c.tcp.SetLinger(0)
	c.tcp.Close()
}

// The ways in which a client goes.
const (
	byClose    = iota // it says so
	byCut             // it says nothing
	byReset           // its machine forgets the connection
	byComing          // it comes back on another connection, and names the first
	withServer        // it stays until the server ends
	allWays
)

// A counted is a counter of a client that was left to grow by 1, and between which numbers it
// may be when all that was left is written.
type counted struct {
	name        string
	least, most int
	twin        *counted // grows in the same write, if neither was taken back
}

// A leaver is a client that leaves increments, takes some back, and goes.
type leaver struct {
	t        testing.TB
	addr     string
	config   *tls.Config
	database string
	place    string // where its counters are
	rng      *rand.Rand
	way      int

	counters []*counted
	answered int         // requests
	gone     atomic.Bool // it asks for nothing more, and what it has left is due
}

// live leaves and takes back, and goes by its way. If the server goes first, so does the client.
// It returns when the client is gone, or, if it stays, when done is closed.
func (l *leaver) live(done <-chan struct{}) {
	c, err := connect(l.t, l.addr, "/.ws?v=5&ns="+l.database, l.config)
	if err != nil {
		return
	}
	defer func() { c.tcp.Close() }()
	if !l.requests(c, 1+l.rng.IntN(8)) {
		return
	}
	switch l.way {
	case byClose:
		_ = c.TrySend("0") // a keep-alive is no answer
		c.closeQuietly()
	case byReset:
		c.reset()
	case byComing:
		again, err := connect(l.t, l.addr, "/.ws?v=5&ns="+l.database+"&ls="+c.session, l.config)
		if err != nil {
			return
		}
		defer again.tcp.Close()
		// What the first has left is written before the second hears hello.
		l.gone.Store(true)
		<-done
		return
	case withServer:
		<-done
		return
	}
	l.gone.Store(true)
}

// closeQuietly sends a close frame to a server that may be gone.
func (c *connected) closeQuietly() {
	_, _ = c.Conn().Write(wiretest.Frame{Op: wiretest.OpClose, Masked: true, Payload: []byte{3, 232}}.Append(nil))
	_, _ = io.Copy(io.Discard, c.Conn())
}

// requests makes some requests. It reports false when the server is gone.
func (l *leaver) requests(c *connected, n int) bool {
	for range n {
		if err := l.request(c); err != nil {
			return false
		}
	}
	return true
}

const increment = `{".sv":{"increment":1}}`

// request leaves something, or takes something back, and notes what that means.
func (l *leaver) request(c *connected) error {
	switch kind := l.rng.IntN(4); {
	case kind == 0 && len(l.counters) > 0:
		n := pick(l.rng, l.counters...)
		if n.twin != nil {
			n.twin.twin, n.twin = nil, nil
		}
		n.least = 0
		ok, err := l.ask(c, "oc", fmt.Sprintf(`{"p":"/%s/%s"}`, l.place, n.name))
		if ok {
			n.most = 0
		}
		return err
	case kind == 1:
		a, b := l.counter(), l.counter()
		ok, err := l.ask(c, "om", fmt.Sprintf(`{"p":"/%s","d":{%q:%s,%q:%s}}`, l.place, a.name, increment, b.name, increment))
		a.twin, b.twin = b, a
		if ok {
			a.least, b.least = 1, 1
		}
		return err
	}
	n := l.counter()
	ok, err := l.ask(c, "o", fmt.Sprintf(`{"p":"/%s/%s","d":%s}`, l.place, n.name, increment))
	if ok {
		n.least = 1
	}
	return err
}

func (l *leaver) counter() *counted {
	n := &counted{name: fmt.Sprintf("c%d", len(l.counters)), most: 1}
	l.counters = append(l.counters, n)
	return n
}

// ask makes a request and reports whether it was done. If it was not, or is not answered, nobody
// knows.
func (l *leaver) ask(c *connected, action, body string) (bool, error) {
	status, err := c.TryAsk(action, body)
	if err != nil {
		return false, err
	}
	if status != "ok" {
		return false, errors.New(status)
	}
	l.answered++
	return true, nil
}

// check compares the counters with what is there. With final all that was left is written.
func (l *leaver) check(got map[string]int, final bool) error {
	for _, n := range l.counters {
		switch count := got[n.name]; {
		case count > n.most:
			return fmt.Errorf("%s/%s is %d, want at most %d", l.place, n.name, count, n.most)
		case count < n.least && final:
			return fmt.Errorf("%s/%s is %d, want %d to %d (way %d)", l.place, n.name, count, n.least, n.most, l.way)
		case final && n.twin != nil && count != got[n.twin.name]:
			return fmt.Errorf("%s/%s is %d, but %s, which came with it, is %d", l.place, n.name, count, n.twin.name, got[n.twin.name])
		}
	}
	return nil
}

// isMade reports whether all that must be written is.
func (l *leaver) isMade(got map[string]int) bool {
	for _, n := range l.counters {
		if got[n.name] < n.least {
			return false
		}
	}
	return true
}

// leaverVariable holds what a client in a process of its own is to do: the address, the data
// directory and the place, with spaces between them.
const leaverVariable = "LIVETREE_TRUST_LEAVER"

// runLeaver is the main function of such a client. It leaves one increment, says so, and stays.
func runLeaver(text string) {
	parts := strings.Fields(text)
	trusted, err := authority(parts[1])
	if err == nil {
		var c *connected
		if c, err = connect(bare{}, parts[0], "/.ws?v=5&ns="+parts[3], &tls.Config{RootCAs: trusted, ServerName: "localhost"}); err == nil {
			var status string
			if status, err = c.TryAsk("o", fmt.Sprintf(`{"p":"/%s/c0","d":%s}`, parts[2], increment)); err == nil {
				fmt.Println(status) //nolint:forbidigo // the parent waits for it
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// A bare stands for the test in a process that is none.
type bare struct{ testing.TB }

func (bare) Helper() {}

func (bare) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// killChild runs a client in a process of its own and kills it, and reports whether it had
// something left.
func (l *leaver) killChild(dir string) (bool, error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), leaverVariable+"="+strings.Join([]string{l.addr, dir, l.place, l.database}, " "))
	out, err := child.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := child.Start(); err != nil {
		return false, err
	}
	n := l.counter()
	said := make([]byte, 3)
	_, err = io.ReadFull(out, said)
	if err == nil && string(said) == "ok\n" {
		n.least = 1
		l.answered++
		l.gone.Store(true)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	return n.least == 1, nil
}

// A crowd is the leavers of one round.
type crowd struct {
	leavers []*leaver
	done    chan struct{}
	alive   sync.WaitGroup
}

// waitMade returns when all that was left by those who are gone is written, as read says.
func (c *crowd) waitMade(read func() (map[string]map[string]int, error)) error {
	for end := time.Now().Add(patience); ; {
		got, err := read()
		if err != nil {
			return err
		}
		missing := ""
		for _, l := range c.leavers {
			if l.gone.Load() && !l.isMade(got[l.place]) {
				missing = l.place
			}
		}
		switch {
		case missing == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("what %s has left is not written", missing)
		}
		<-time.After(10 * time.Millisecond)
	}
}
