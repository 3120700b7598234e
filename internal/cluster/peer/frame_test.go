package peer

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
)

func TestFramesAreReadAsTheyAreWritten(t *testing.T) {
	all := []frame{
		{kind: greet, purpose: forCalls, name: "10.0.0.1:9100"},
		{kind: ping, id: 7},
		{kind: pong, id: 7, clock: -5},
		{kind: call, id: 1, total: 3, name: "hello", body: []byte("abc")},
		{kind: part, id: 1, body: bytes.Repeat([]byte("x"), partBytes)},
		{kind: cancel, id: 1},
		{kind: answer, id: 1 << 60, total: 1 << 30, body: []byte{}},
		{kind: refused, id: 2, body: []byte("no")},
		{kind: unseen, id: 3, body: []byte("busy")},
	}
	var wire bytes.Buffer
	for _, f := range all {
		wire.Write(f.encode())
	}
	r := newFrameReader(&wire)
	for _, want := range all {
		got, err := r.next()
		if err != nil || !bytes.Equal(got.encode(), want.encode()) || got.kind != want.kind {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestWhatIsNoFrame(t *testing.T) {
	for name, wire := range map[string]string{
		"no length":           "\x00\x00\x00\x00\x01",
		"huge":                "\xff\xff\xff\xff\x05" + strings.Repeat("x", 100),
		"a bit too long":      "\x00\x01\x02\x01\x05" + strings.Repeat("x", 70<<10),
		"type 0":              "\x00\x00\x00\x09\x00" + strings.Repeat("x", 8),
		"type 10":             "\x00\x00\x00\x09\x0a" + strings.Repeat("x", 8),
		"ping that is short":  "\x00\x00\x00\x08\x02" + strings.Repeat("x", 7),
		"ping that is long":   "\x00\x00\x00\x0a\x02" + strings.Repeat("x", 9),
		"pong without clock":  "\x00\x00\x00\x09\x03" + strings.Repeat("x", 8),
		"call without total":  "\x00\x00\x00\x0b\x04" + strings.Repeat("x", 10),
		"call without kind":   "\x00\x00\x00\x0e\x04" + strings.Repeat("\x00", 13),
		"call of a long kind": "\x00\x00\x00\x0f\x04" + strings.Repeat("\x00", 12) + "\x09x",
		"other version":       "\x00\x00\x00\x04\x01\x02\x01x",
		"cut":                 "\x00\x00\x00\x09\x02xx",
	} {
		if f, err := newFrameReader(strings.NewReader(wire)).next(); err == nil {
			t.Errorf("%s is read as %+v", name, f)
		}
	}
}

// FuzzFrames feeds a connection what a peer without manners may send: nothing panics, frames that are read are written
// as they were, and all that calls have taken is given back.
func FuzzFrames(f *testing.F) {
	for _, all := range [][]frame{
		{{kind: call, id: 1, total: 3, name: "echo", body: []byte("abc")}, {kind: cancel, id: 1}},
		{{kind: call, id: 1, total: 5, name: "echo", body: []byte("abc")}, {kind: part, id: 1, body: []byte("de")}},
		{{kind: call, id: 1, total: 1 << 20, name: "echo", body: []byte("abc")}, {kind: call, id: 2, total: 2, name: "what", body: []byte("ab")}},
		{{kind: call, id: 1, total: 50, name: "echo", body: []byte("abc")}, {kind: cancel, id: 1}, {kind: part, id: 1, body: []byte("x")}},
	} {
		var wire []byte
		for _, one := range all {
			wire = append(wire, one.encode()...)
		}
		f.Add(wire, false)
		f.Add(wire, true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, stream bool) {
		o, err := Options{Key: Key{seeds: make([][keyBytes]byte, 1)}, MaxBody: 100, MaxCalls: 2}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		front := &Front{o: o}
		front.bodies.limit, front.calls.limit, front.streams.limit = 200, 2, 1
		front.kinds.calls = map[string]Handler{"echo": func(_ context.Context, _ string, b []byte) ([]byte, error) { return b, nil }}
		life, end := context.WithCancel(t.Context())
		ours, theirs := net.Pipe()
		a := &arrivals{Conn: ours}
		in := &inbound{conn: newConn(a, a, o, quietPings), front: front, stream: stream, life: life, calls: map[uint64]*incoming{}}
		var sent sync.WaitGroup
		sent.Go(func() {
			for {
				select {
				case <-in.out:
				case <-in.done:
					return
				}
			}
		})
		r := newFrameReader(bytes.NewReader(wire))
		for {
			one, err := r.next()
			if err != nil {
				break
			}
			if again, err := newFrameReader(bytes.NewReader(one.encode())).next(); err != nil || !bytes.Equal(again.encode(), one.encode()) {
				t.Fatalf("%+v is read again as %+v, %v", one, again, err)
			}
			if one.kind != ping && one.kind != pong && in.take(one) != nil {
				break
			}
		}
		in.close(ErrClosed)
		end()
		sent.Wait()
		in.all.Wait()
		in.giveBack()
		_ = theirs.Close()
		if b, c, s := front.bodies.taken.Load(), front.calls.taken.Load(), front.streams.taken.Load(); b != 0 || c != 0 || s != 0 {
			t.Fatalf("%d bytes, %d calls and %d streams stay taken", b, c, s)
		}
	})
}
