package client_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/tree"
)

// printed returns events, one on a line.
func printed(events []client.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s %s", e.Name, e.Path, e.Data)
		if e.ID != "" {
			fmt.Fprintf(&b, " id=%s", e.ID)
		}
		if e.Truncated {
			b.WriteString(" truncated")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestEvents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	tests := []struct{ name, stream, want string }{
		{"as the server sends it", "event: put\ndata: {\"path\":\"/\",\"data\":{\"a\":1}}\n\nevent: keep-alive\ndata: null\n\n", "put / {\"a\":1}\nkeep-alive  null\n"},
		{"with IDs", "event: put\nid: 7-12\ndata: {\"path\":\"/a\",\"data\":null}\n\n", "put /a null id=7-12\n"},
		{"carriage returns", "event: put\rdata: {\"path\":\"/\",\"data\":1}\r\revent: put\r\ndata: {\"path\":\"/\",\"data\":2}\r\n\r\n", "put / 1\nput / 2\n"},
		{"a byte order mark", "\ufeffevent: put\ndata: {\"path\":\"/\",\"data\":1}\n\n", "put / 1\n"},
		{"comments, spaces and unknown fields", ": hello\nretry: 5\nevent:put\ndata:{\"path\":\"/\",\n:\ndata: \"data\":1}\n\n", "put / 1\n"},
		{"the other order", "event: patch\ndata: {\"data\":{\"b\":2},\"path\":\"/x\"}\n\n", "patch /x {\"b\":2}\n"},
		{"a frame without data", "event: put\n\nevent: keep-alive\ndata: null\n\n", "keep-alive  null\n"},
		{"cut off", "event: put\ndata: {\"path\":\"/\",\"data\":1}\n\nevent: put\ndata: {\"path\":\"/\",\"data\":2}\n", "put / 1\n"},
		{"too long", "event: put\ndata: {\"path\":\"/a/b\",\"data\":\"" + long + "\"}\n\nevent: put\ndata: {\"path\":\"/\",\"data\":2}\n\n", "put /a/b  truncated\nput / 2\n"},
	}
	for _, test := range tests {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			events, err := client.Events(reader(strings.NewReader(test.stream)), 64)
			if got := printed(events); got != test.want || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v, events\n%swant\n%s", test.name, err, got, test.want)
			}
		}
	}
}

func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"1", "{", `{"path":"/"}`, `{"data":1}`, `{"path":5,"data":1}`, `{"path":"/","data":nope}`} {
		_, err := client.Events(strings.NewReader("event: put\ndata: "+data+"\n\n"), 64)
		if _, ok := errors.AsType[*client.DataError](err); !ok {
			t.Errorf("a put with %s: %v, want a DataError", data, err)
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	var c client.Cache
	steps := []struct{ name, path, data, want string }{
		{"put", "/", `{"a":{"x":1},"b":2}`, `{"a":{"x":1},"b":2}`},
		{"patch", "/a", `{"y":[1,2],"x":null}`, `{"a":{"y":[1,2]},"b":2}`},
		{"keep-alive", "", `null`, `{"a":{"y":[1,2]},"b":2}`},
		{"put", "/a/y", `null`, `{"b":2}`},
		{"put", "/b/c", `"deep"`, `{"b":{"c":"deep"}}`},
		{"put", "/", `null`, `null`},
	}
	for _, step := range steps {
		if err := c.Apply(client.Event{Name: step.name, Path: step.path, Data: []byte(step.data)}); err != nil {
			t.Fatalf("%s %s %s: %v", step.name, step.path, step.data, err)
		}
		if got := string(tree.AppendJSON(nil, c.Node(), tree.Plain)); got != step.want {
			t.Errorf("after %s %s %s: %s, want %s", step.name, step.path, step.data, got, step.want)
		}
	}
	for _, e := range []client.Event{{Name: "put", Path: "/a.b", Data: []byte("1")}, {Name: "put", Path: "/", Truncated: true}, {Name: "patch", Path: "/", Data: []byte("1")}} {
		if err := c.Apply(e); err == nil {
			t.Errorf("the cache takes %+v", e)
		}
	}
}

// TestCacheWithPriorities: as events of the export form show them.
func TestCacheWithPriorities(t *testing.T) {
	t.Parallel()
	var c client.Cache
	for _, step := range []struct{ name, path, data, want string }{
		{"put", "/", `{"a":{"x":1,".priority":1}}`, `{"a":{".priority":1,"x":1}}`},
		{"patch", "/a", `{".priority":2}`, `{"a":{".priority":2,"x":1}}`},
		{"patch", "/a", `{"x":null,"y":2}`, `{"a":{".priority":2,"y":2}}`},
		{"patch", "/a", `{}`, `{"a":{".priority":2,"y":2}}`},
		{"patch", "/a", `{".priority":null}`, `{"a":{"y":2}}`},
	} {
		if err := c.Apply(client.Event{Name: step.name, Path: step.path, Data: []byte(step.data)}); err != nil {
			t.Fatalf("%s %s %s: %v", step.name, step.path, step.data, err)
		}
		if got := string(tree.AppendJSON(nil, c.Node(), tree.Export)); got != step.want {
			t.Errorf("after %s %s %s: %s, want %s", step.name, step.path, step.data, got, step.want)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: put\nid: 1-2\ndata: {\"path\":\"/a\",\"data\":{\"b\":[1]}}\n\n")
	f.Add("data: \r\r\n\n\revent: patch\ndata: {\"path\":\"/\",\"data\":{}}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		events, err := client.Events(strings.NewReader(stream), 32)
		if err == nil {
			t.Error("a stream that ends gives no error")
		}
		slow, _ := client.Events(iotest.OneByteReader(strings.NewReader(stream)), 32)
		if printed(events) != printed(slow) {
			t.Errorf("read at once:\n%s\nbyte by byte:\n%s", printed(events), printed(slow))
		}
		var c client.Cache
		for _, e := range events {
			_ = c.Apply(e)
		}
	})
}
