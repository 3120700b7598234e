package wire

import (
	"testing"
	"time"
)

// TestEffort says after which requests another goroutine waits for the next one: after all
// but those of a client that writes all the time.
func TestEffort(t *testing.T) {
	t.Parallel()
	f := newFront(false)
	clock := time.UnixMilli(1_700_000_000_000)
	f.opts.Now = func() time.Time { return clock }
	k := begin(t, f, open(t, `{"rules":{".read":true,".write":true}}`))
	for _, step := range []struct {
		after   time.Duration
		request string
		want    bool
	}{
		{0, `{"r":1,"a":"q","b":{"p":"/a","h":""}}`, true},
		{0, `{"r":2,"a":"q","b":{"p":"/b","h":""}}`, true},
		{0, `{"r":3,"a":"p","b":{"p":"/c","d":1}}`, false},
		{busyTime, `{"r":4,"a":"p","b":{"p":"/c","d":2}}`, false},
		{busyTime + time.Millisecond, `{"r":5,"a":"m","b":{"p":"/c","d":{"x":1}}}`, true},
		{0, `{"r":6,"a":"m","b":{"p":"/c","d":{"x":2}}}`, false},
		{0, `{"r":7,"a":"g","b":{"p":"/c"}}`, true},
	} {
		clock = clock.Add(step.after)
		k.sendText(`{"t":"d","d":` + step.request + `}`)
		if got := k.session.effort.take(); got != step.want || k.session.effort.take() {
			t.Errorf("after %s and %s: effort %t, want %t, once", step.after, step.request, got, step.want)
		}
	}
	k.sendText(`{"t":"c","d":{"t":"p","d":{}}}`)
	if k.session.effort.take() {
		t.Error("a ping is an effort")
	}
}
