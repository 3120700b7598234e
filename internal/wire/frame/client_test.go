package frame_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wiretest"
)

// talk is a server of one answer: to any request it says that all is well. It closes as its client
// does, or with the code of what it cannot read.
func talk(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/.ws" {
		http.NotFound(w, r)
		return
	}
	conn, buffered, err := frame.Upgrade(w, r, time.Time{})
	if err != nil {
		return
	}
	defer conn.Close()
	out := frame.Append(nil, []byte(`{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"`+r.Host+`","s":"0123456789abcdefghijABCDEFGHIJ01"}}}`))
	reader := frame.NewReader(conn, frame.ReaderOptions{
		Buffered: buffered,
		Ping:     func(payload []byte) { out = frame.AppendPong(out, payload) },
	})
	for {
		if _, err := conn.Write(out); err != nil {
			return
		}
		message, err := reader.Next()
		var refused *frame.Error
		var closed *frame.CloseError
		switch {
		case errors.As(err, &refused):
			out = frame.AppendClose(nil, refused.Code, refused.Reason)
		case errors.As(err, &closed):
			out = frame.AppendClose(nil, closed.Reply(), "")
		case err == nil:
			// The reply has what was asked for as a node, so that it is as long.
			_, body, _ := strings.Cut(string(message), `"p":"`)
			body, _, _ = strings.Cut(body, `"`)
			out = frame.Append(out[:0], []byte(`{"t":"d","d":{"r":1,"b":{"s":"ok","d":"`+body+`"}}}`))
			continue
		}
		_, _ = conn.Write(out)
		return
	}
}

func TestClientOfWiretest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(talk))
	defer server.Close()
	address := server.Listener.Addr().String()
	for _, size := range []int{1, 16384, 100000} {
		c := wiretest.Dial(t, wiretest.Dialing{Address: address, Header: http.Header{"Origin": {"https://example.org"}}})
		if id := c.Hello(); len(id) != 32 {
			t.Errorf("the session is %q", id)
		}
		c.Ping("x")
		path := strings.Repeat("😀", size)
		if _, status, d := c.Ask("g", `{"p":"`+path+`","q":{}}`); status != "ok" || d != `"`+path+`"` {
			t.Errorf("the reply to a request of %d characters is %s %s", size, status, brief(d))
		}
		c.Close(4000)
		c.ExpectClose(4000)
	}
	c := wiretest.Dial(t, wiretest.Dialing{Address: address})
	c.SendFrames(wiretest.Frame{Op: wiretest.OpBinary, Masked: true})
	c.ExpectClose(1003)

	var refused *wiretest.Refused
	_, err := wiretest.Try(t, wiretest.Dialing{Address: address, Target: "/"})
	if !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("another address: %v, want status 404", err)
	}
}
