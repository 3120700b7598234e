package rest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
)

// Libraries for microcontrollers have no room for a parser of HTTP and JSON: they
// search the bytes of an answer for literal text, in the letter case and with the
// spaces that the hosted service writes. A device here does the same searches.

// A deviceAnswer is what a device finds in the bytes of an answer.
type deviceAnswer struct {
	status  int
	etag    string // after "ETag: "
	pushed  string // after {"name":"
	problem string // after "error" :
	payload string
}

// deviceParse reads an answer as those libraries do.
func deviceParse(head, body string) deviceAnswer {
	between := func(text, from, to string) string {
		_, rest, found := strings.Cut(text, from)
		if !found {
			return ""
		}
		value, _, _ := strings.Cut(rest, to)
		return value
	}
	a := deviceAnswer{etag: between(head, "ETag: ", "\r\n"), payload: body}
	a.status, _ = strconv.Atoi(between(head, "HTTP/1.1 ", " "))
	if strings.HasPrefix(body, `{"name":"`) {
		a.pushed = between(body, `{"name":"`, `"`)
	}
	a.problem = between(body, `"error" : "`, `"`)
	return a
}

// deviceAsk sends what a device does: its own order and spelling of headers, and the
// secret in the URL.
func (w *wire) deviceAsk(method, path, body string, headers ...string) deviceAnswer {
	w.t.Helper()
	text := method + " " + path + ".json?auth=" + secret + " HTTP/1.1\nHost: device.example\nUser-Agent: ESP\nX-Firebase-ETag: true\n" +
		"Connection: keep-alive\nAccept-Encoding: identity;q=1,chunked;q=0.1,*;q=0\n"
	for _, h := range headers {
		text += h + "\n"
	}
	if body != "" {
		text += "Content-Type: application/json\nContent-Length: " + strconv.Itoa(len(body)) + "\n"
	}
	w.send(text + "\n" + body)
	head, answer := w.receive(method)
	if strings.Contains(head, "Content-Encoding") {
		w.t.Errorf("%s %s is answered with a compressed body, which no device can read", method, path)
	}
	return deviceParse(head, answer)
}

// inBothDialects runs a test in each: devices are set up for one server or another.
func inBothDialects(t *testing.T, test func(t *testing.T, s *server)) {
	for _, dialect := range []string{rest.SpecDialect, rest.FirebaseDialect} {
		t.Run(dialect, func(t *testing.T) {
			test(t, serve(t, func(o *rest.Options) { o.Dialect = dialect }))
		})
	}
}

func TestDeviceFindsWhatItSearches(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, s *server) {
		w := s.dial() // one connection for all, as devices keep it
		set := w.deviceAsk("PUT", "/sensor/t", "21.5")
		if set.status != 200 || set.etag == "" || set.payload != "21.5" || set.problem != "" {
			t.Errorf("PUT: %+v", set)
		}
		got := w.deviceAsk("GET", "/sensor/t", "")
		if got.status != 200 || got.etag != set.etag || got.payload != "21.5" {
			t.Errorf("GET: %+v, want the ETag %s", got, set.etag)
		}
		pushed := w.deviceAsk("POST", "/log", `{"t":1}`)
		if pushed.status != 200 || len(pushed.pushed) != 20 || pushed.etag == "" {
			t.Errorf("POST: %+v, want a key behind {\"name\":\"", pushed)
		}
		if a := w.deviceAsk("PUT", "/sensor/t", "22", "if-match: "+pushed.etag); a.status != 412 || a.etag != set.etag || a.payload != "21.5" {
			t.Errorf("PUT with a wrong ETag: %+v", a)
		}
		if a := w.deviceAsk("PUT", "/sensor/t", "22", "if-match: "+set.etag); a.status != 200 {
			t.Errorf("PUT with the right ETag: %+v", a)
		}
		if a := w.deviceAsk("POST", "/sensor", `{"u":1}`, "X-HTTP-Method-Override: PATCH"); a.status != 200 || a.payload != `{"u":1}` {
			t.Errorf("POST as PATCH: %+v", a)
		}
		if a := w.deviceAsk("PUT", "/sensor/at", `{".sv":"timestamp"}`); a.status != 200 || len(a.payload) != 13 {
			t.Errorf("PUT of the time: %+v", a)
		}
		if a := w.deviceAsk("DELETE", "/sensor", ""); a.status != 200 || a.payload != "null" || a.etag != "null_etag" {
			t.Errorf("DELETE: %+v", a)
		}
		if a := w.deviceAsk("PUT", "/sensor", `{"a":`); a.status != 400 || a.problem == "" {
			t.Errorf("PUT of half an object: %+v, want a problem behind \"error\" : ", a)
		}
	})
}

func TestDeviceThatIsDenied(t *testing.T) {
	t.Parallel()
	for dialect, status := range map[string]string{rest.SpecDialect: "403", rest.FirebaseDialect: "401"} {
		w := serve(t, func(o *rest.Options) { o.Dialect = dialect }).dial()
		w.send("GET /a.json?ns=closed HTTP/1.1\nHost: h\n\n")
		head, body := w.receive("GET")
		if a := deviceParse(head, body); strconv.Itoa(a.status) != status || a.problem != "Permission denied" {
			t.Errorf("%s: %+v, want %s", dialect, a, status)
		}
	}
}

// TestDeviceStream reads a stream as devices do: line by line, with the literal
// names of events, and the text null for a sign of life.
func TestDeviceStream(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{KeepAlive: 30 * time.Millisecond})
	if _, err := s.database.SetRules(context.Background(), `{"rules":{".read":true,".write":true}}`); err != nil {
		t.Fatal(err)
	}
	c := s.listen("http/1.1", "/sensor.json?auth="+secret)
	if !strings.Contains(c.head, "\r\nContent-Type: text/event-stream; charset=utf-8\r\n") || strings.Contains(c.head, "chunked") {
		t.Errorf("the head of a stream is %q: devices read it to the end of the connection, without chunks", c.head)
	}
	s.write("/sensor/t", "1")
	seen := map[string]string{}
	for len(seen) < 2 || seen["put /t"] == "" {
		event, data := c.deviceEvent()
		switch event {
		case "keep-alive":
			if data != "null" {
				t.Fatalf("a sign of life has the data %q", data)
			}
			seen[event] = data
		case "put":
			_, rest, _ := strings.Cut(data, `{"path":"`)
			path, value, found := strings.Cut(rest, `","data":`)
			if !found {
				t.Fatalf("a device finds no path and data in %q", data)
			}
			seen[event+" "+path] = strings.TrimSuffix(value, "}")
		default:
			t.Fatalf("the stream has the event %q, %q", event, data)
		}
	}
	if seen["put /t"] != "1" {
		t.Errorf("the device has seen %q", seen)
	}
}

// deviceEvent returns the next event: exactly two lines and an empty one.
func (c *listening) deviceEvent() (event, data string) {
	c.t.Helper()
	var lines [3]string
	for i := range lines {
		line, err := c.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		lines[i] = line
	}
	event, isEvent := strings.CutPrefix(lines[0], "event: ")
	data, isData := strings.CutPrefix(lines[1], "data: ")
	if !isEvent || !isData || lines[2] != "\n" {
		c.t.Fatalf("the stream has the lines %q", lines)
	}
	return strings.TrimSuffix(event, "\n"), strings.TrimSuffix(data, "\n")
}
