package outbox

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeClient returns a client outside of any server, by whose clock nothing moves but
// by onSend of its way.
func fakeClient(t *testing.T, now *time.Time) *fakeTeller {
	f := newFake(t)
	f.client.way = f.way
	f.client.clients = &Clients{opts: Options{Now: func() time.Time { return *now }}}
	return f
}

// TestBatchGathers: small frames go out together, large ones by themselves, all of them
// in order.
func TestBatchGathers(t *testing.T) {
	small, large := strings.Repeat("s", 6000), strings.Repeat("L", gatherBytes+1)
	for _, test := range []struct {
		frames, want []string
	}{
		{nil, nil},
		{[]string{"a", "b"}, []string{"ab"}},
		{[]string{small, small}, []string{small + small}},
		{[]string{small, small, small, "a"}, []string{small + small, small, "a"}},
		{[]string{large, "a"}, []string{large, "a"}},
		{[]string{"a", large, large, "b", "c"}, []string{"a", large, large, "bc"}},
	} {
		f := fakeClient(t, new(time.Time))
		batch := f.client.NewBatch()
		for _, frame := range test.frames {
			if err := batch.Add([]byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := batch.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		batch.Free()
		if got := f.way.texts(); !slices.Equal(got, test.want) {
			t.Errorf("%.60q are sent as %.60q, want %.60q", test.frames, got, test.want)
		}
	}
}

// TestBatchOfAClientThatTakesNothing: nothing is sent after a failure.
func TestBatchOfAClientThatTakesNothing(t *testing.T) {
	f := fakeClient(t, new(time.Time))
	f.way.fails = errCut
	batch := f.client.NewBatch()
	defer batch.Free()
	batch.Bytes = append(batch.Bytes, "a"...)
	if err := batch.Add(make([]byte, gatherBytes)); !errors.Is(err, errCut) || len(f.way.sent) != 1 {
		t.Errorf("a frame after one that could not be sent: %v, and %d writes, want one", err, len(f.way.sent))
	}
}

// TestLongWriterSendsAll: what is printed in parts of any size arrives as it is.
func TestLongWriterSendsAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		f := fakeClient(t, new(time.Time))
		w := f.client.NewLongWriter()
		w.Bytes = append(w.Bytes, "head"...)
		want := "head"
		for range random.IntN(40) {
			part := strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(3*gatherBytes/2))
			want += part
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if sent := len(f.way.sent) > 0; w.Sent() != sent {
			t.Errorf("Sent is %v after %d writes", w.Sent(), len(f.way.sent))
		}
		if err := w.Flush(); err != nil || w.Failed() != nil {
			t.Fatal(err, w.Failed())
		}
		w.Free()
		if got := strings.Join(f.way.texts(), ""); got != want {
			t.Fatalf("%d bytes arrive as %d others", len(want), len(got))
		}
		for _, text := range f.way.texts() {
			if len(text) > 3*gatherBytes/2 {
				t.Errorf("%d bytes are sent at a time", len(text))
			}
		}
	}
}

// TestLongWriterOfSlowClients: who takes less than 16 KiB a second for a minute is sent
// no more; the time between writes does not count.
func TestLongWriterOfSlowClients(t *testing.T) {
	for _, test := range []struct {
		name         string
		takes, works time.Duration // for 16 KiB
		want         error
	}{
		{"fast", 0, 0, nil},
		{"fast, with a slow read", 0, time.Hour, nil},
		{"fast enough", 990 * time.Millisecond, time.Hour, nil},
		{"slow", 1010 * time.Millisecond, 0, ErrSlow},
	} {
		now := time.Unix(1_700_000_000, 0)
		f := fakeClient(t, &now)
		f.way.onSend = func() { now = now.Add(test.takes) }
		w := f.client.NewLongWriter()
		var err error
		for range 200 {
			now = now.Add(test.works)
			if _, err = w.Write(make([]byte, gatherBytes)); err != nil {
				break
			}
		}
		w.Free()
		if !errors.Is(err, test.want) || !errors.Is(w.Failed(), test.want) {
			t.Errorf("a client that is %s: %v (%v), want %v", test.name, err, w.Failed(), test.want)
		}
	}
}

// TestLongWriterLetsGo: a front lets go of what others wait for while the client takes
// its time, and that it then waits for it again does not make the client slow.
func TestLongWriterLetsGo(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := fakeClient(t, &now)
	var calls []string
	note := func(what string) { calls = append(calls, what) }
	f.way.onSend = func() { note("send") }
	w := f.client.NewLongWriter()
	defer w.Free()
	w.Sending = func() { note("let go") }
	w.Taken = func() error {
		now = now.Add(time.Hour)
		note("take again")
		return nil
	}
	for range 2 {
		if _, err := w.Write(make([]byte, gatherBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if want := slices.Repeat([]string{"let go", "send", "take again"}, 2); !slices.Equal(calls, want) {
		t.Errorf("two long parts are sent by %q, want %q", calls, want)
	}
	w.Taken = func() error { return errCut }
	if _, err := w.Write(make([]byte, gatherBytes)); !errors.Is(err, errCut) || !errors.Is(w.Failed(), errCut) {
		t.Errorf("when what was let go is not there again, Write returns %v (%v)", err, w.Failed())
	}
}
