package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire"
)

// TestTooBigToRead: what is longer than a message may be is refused to whoever asks for it,
// and the connection goes on. What is just as long is sent.
func TestTooBigToRead(t *testing.T) {
	t.Parallel()
	const most = 100_000
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.MaxContent = most })
	const tooBig = `"Data requested exceeds the maximum size that can be accessed with a single request"`
	around := len(reply(1, ``))
	s.db.Put("/fits", `"`+strings.Repeat("x", most-around-2)+`"`)
	s.db.Put("/one", `"`+strings.Repeat("x", most-around-1)+`"`)
	var list strings.Builder
	for i := range 200 {
		fmt.Fprintf(&list, `,"k%03d":{"n":%d,"pad":"%s"}`, i, i%7, strings.Repeat("y", 1000))
	}
	s.db.Put("/list", "{"+list.String()[1:]+"}")
	c, _ := s.dial("")
	if before, d := ask(t, c, "g", `{"p":"/fits","q":{}}`); len(before) > 0 || len(d) != most-around {
		t.Errorf("what fits is answered with %d bytes after %q", len(d), before)
	}
	for _, request := range [][2]string{
		{"g", `{"p":"/one","q":{}}`},
		{"g", `{"p":"/list","q":{}}`},
		{"g", `{"p":"/list","q":{"i":".key","l":150,"vf":"l"}}`},
		{"q", `{"p":"/one","h":""}`},
		{"q", `{"p":"/list","h":""}`},
		{"q", `{"p":"/list","q":{"i":".key","l":150,"vf":"l"},"t":1,"h":""}`},
		{"q", `{"p":"/list","q":{"i":"n","l":150,"vf":"l"},"t":2,"h":""}`}, // by a scan
		{"q", `{"p":"/","h":""}`},
	} {
		before, status, d := c.Ask(request[0], request[1])
		if len(before) > 0 || status != "too_big" || d != tooBig {
			t.Errorf("%s %s is answered %s %.200s after %d messages, want too_big", request[0], request[1], status, d, len(before))
		}
	}
	s.db.Put("/list/k000/n", "8") // nobody listens
	if before, _ := ask(t, c, "q", `{"p":"/list","q":{"i":".key","l":50,"vf":"l"},"t":3,"h":""}`); len(before) != 1 || len(before[0]) < 50_000 {
		t.Errorf("a window that fits is told by %d messages", len(before))
	}
}
