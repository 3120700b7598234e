//go:build unix

package trust_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestExpiryFindsBugs shows that the books of what expires notice what contradicts each promise, and
// nothing else.
func TestExpiryFindsBugs(t *testing.T) {
	t.Parallel()
	deleted := func(due, at int64, by string) attempt {
		d := delivery{Params: map[string]string{"id": "a"}, Event: "delete", Before: fmt.Appendf(nil, `{"e":%d}`, due), Time: at}
		d.Who.By = by
		return attempt{delivery: d}
	}
	for _, c := range []struct {
		name string
		do   func(b *expiryBooks) // after a was written, due at 1000
		want string               // in the problem; none if all is well
	}{
		{"is there before its time", func(b *expiryBooks) { b.saw(b.snapshot(), map[string]int64{"a": 1000}, 900, 950) }, ""},
		{"is gone at its time", func(b *expiryBooks) { b.saw(b.snapshot(), nil, 990, 1000) }, ""},
		{"is gone before", func(b *expiryBooks) { b.saw(b.snapshot(), nil, 990, 999) }, "is gone at 999"},
		{"is gone without a rule", func(b *expiryBooks) {
			b.ruled = false
			b.saw(b.snapshot(), nil, 1100, 1200)
		}, "is gone at 1200"},
		{"is gone by the time that it had", func(b *expiryBooks) {
			b.sent("a", 3000)
			b.answered("a", 3000, true, 950)
			b.saw(b.snapshot(), nil, 1100, 1200)
		}, "is gone at 1200"},
		{"has a time that perhaps was written", func(b *expiryBooks) {
			b.sent("a", 3000)
			b.answered("a", 3000, false, 950)
			b.saw(b.snapshot(), map[string]int64{"a": 3000}, 1100, 1200)
			b.saw(b.snapshot(), nil, 1100, 1200)
		}, ""},
		{"was being written", func(b *expiryBooks) {
			before := b.snapshot()
			b.sent("a", 3000)
			b.saw(before, nil, 900, 950)
		}, ""},
		{"has its old time again", func(b *expiryBooks) {
			b.sent("a", 3000)
			b.answered("a", 3000, true, 950)
			b.saw(b.snapshot(), map[string]int64{"a": 1000}, 960, 970)
		}, "in place of one of"},
		{"has a time that nobody wrote", func(b *expiryBooks) { b.saw(b.snapshot(), map[string]int64{"a": 5}, 900, 950) }, "never written"},
		{"stays", func(b *expiryBooks) { b.saw(b.snapshot(), map[string]int64{"a": 1000}, 2001, 2002) }, "is there 1001 ms later"},
		{"stays after a start", func(b *expiryBooks) {
			b.since = 1500
			b.saw(b.snapshot(), map[string]int64{"a": 1000}, 2001, 2002)
		}, ""},
		{"is deleted at its time", func(b *expiryBooks) { b.told([]attempt{deleted(1000, 1000, "expiry")}, nil) }, ""},
		{"is deleted before its time", func(b *expiryBooks) { b.told([]attempt{deleted(1000, 999, "expiry")}, nil) }, "which was not due"},
		{"is deleted by another", func(b *expiryBooks) { b.told([]attempt{deleted(1000, 1000, "nobody")}, nil) }, "which was not due"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &expiryBooks{children: map[string]*expiring{}, ruled: true, bound: time.Second}
			b.sent("a", 1000)
			b.answered("a", 1000, true, 900)
			c.do(b)
			problems := strings.Join(b.problems, "\n")
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("found %q, want %q", problems, c.want)
			}
		})
	}
}
