package lane

import (
	"bufio"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// A drowsy connection reads one request, and then nothing until it is woken by its
// deadline, as on a machine that is busy with something else.
type drowsy struct {
	net.Conn
	reads int
	once  sync.Once
	woken chan struct{}
}

func (d *drowsy) Read(p []byte) (int, error) {
	if d.reads++; d.reads == 2 {
		<-d.woken
		return 0, os.ErrDeadlineExceeded
	}
	return d.Conn.Read(p)
}

func (d *drowsy) SetReadDeadline(deadline time.Time) error {
	if deadline.Equal(past) {
		d.once.Do(func() { close(d.woken) })
	}
	return d.Conn.SetReadDeadline(deadline)
}

// TestShutdownAnswersWhatHasCome: a request that was there before its connection
// was closed is answered, although nobody had looked at it yet; its body, too.
func TestShutdownAnswersWhatHasCome(t *testing.T) {
	p := newPair(t, various)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	served, err := tcp.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.lane.Serve(&drowsy{Conn: served, woken: make(chan struct{})})
	answers := bufio.NewReader(client)
	send(t, client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	receive(t, answers)
	send(t, client, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.lane.Shutdown(t.Context(), noMore)
	}()
	send(t, client, "body")
	if response, body := receive(t, answers); response.StatusCode != 200 || body != "body <nil>" {
		t.Errorf("the request is answered %s %q, want its body", response.Status, body)
	}
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("then comes %q, %v, want the end", rest, err)
	}
	<-done
}
