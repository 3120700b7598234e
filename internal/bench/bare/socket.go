package bare

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
)

// hello is as long as that of Livetree.
const hello = `{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"h":"localhost:9000","v":"5","s":"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"}}}`

// openSocket opens a websocket with the library that Livetree has: a goroutine reads
// what the client asks, and says yes. Who publishes writes to all.
func (b *server) openSocket(w http.ResponseWriter, r *http.Request) {
	const upgradeTime = 10 * time.Second
	c, buffered, err := frame.Upgrade(w, r, time.Now().Add(upgradeTime)) //nolint:forbidigo // a real connection
	if err != nil {
		return
	}
	if _, err := c.Write(frame.Append(nil, []byte(hello))); err != nil {
		_ = c.Close()
		return
	}
	b.mu.Lock()
	b.sockets[c] = struct{}{}
	b.mu.Unlock()
	go b.converse(c, frame.NewReader(c, frame.ReaderOptions{Buffered: buffered, Ping: func([]byte) {}}))
}

// converse answers requests until the client leaves.
func (b *server) converse(c net.Conn, requests *frame.Reader) {
	defer func() {
		b.mu.Lock()
		delete(b.sockets, c)
		b.mu.Unlock()
		requests.Close()
		_ = c.Close()
	}()
	for {
		text, err := requests.Next()
		if err != nil {
			return
		}
		_, rest, _ := bytes.Cut(text, []byte(`"r":`))
		number, _, _ := bytes.Cut(rest, []byte(","))
		answer := append([]byte(`{"t":"d","d":{"r":`), number...)
		if _, err := c.Write(frame.Append(nil, append(answer, `,"b":{"s":"ok","d":{}}}}`...))); err != nil {
			return
		}
	}
}

// pushFrame is what a websocket is sent.
func pushFrame(path string, body []byte) []byte {
	text := append([]byte(`{"t":"d","d":{"a":"d","b":{"p":"`), path[1:]...)
	text = append(append(append(text, `","d":`...), body...), "}}}"...)
	return frame.Append(nil, text)
}
