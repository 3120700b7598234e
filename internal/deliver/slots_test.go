package deliver

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/hook"
)

func testQueue() *queue { return &queue{wakes: make(chan struct{}, 1)} }

func isWoken(q *queue) bool {
	select {
	case <-q.wakes:
		return true
	default:
		return false
	}
}

// TestSlots has a queue with much under way leave room for others, and not pass one that waits and has nothing.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := &slots{count: 8, maxBytes: 136} // 102 for those above 4
	slow, other, third := testQueue(), testQueue(), testQueue()
	if !s.take(slow, 0, 25) || !s.take(slow, 1, 25) || s.take(slow, 2, 25) {
		t.Error("a queue does not get half of the bytes, or more")
	}
	if !s.take(other, 0, 50) || s.take(third, 0, 10) {
		t.Error("the other half is not for queues that have nothing")
	}
	s.give(25)
	if !isWoken(third) || isWoken(slow) {
		t.Error("the queue that has nothing is not woken first")
	}
	if s.take(slow, 1, 5) {
		t.Error("a queue passes one that waits and has nothing")
	}
	if !s.take(third, 0, 10) || !isWoken(slow) {
		t.Error("the queue that was woken gets nothing, or the next is not woken")
	}
	s = &slots{count: 8, maxBytes: 136}
	if !s.take(slow, 0, 40) || s.take(third, 0, 70) || s.take(slow, 1, 5) || s.take(other, 0, 5) {
		t.Error("a queue that needs less passes one that waits and has nothing")
	}
	if !s.take(other, 0, 4) || !s.take(slow, 1, 4) {
		t.Error("a small notice waits for bytes of a large one")
	}
	for s.take(other, 1, 4) && s.used < 8 {
	}
	if s.used != 7 {
		t.Errorf("small notices leave %d slots for one that waits for bytes, want 1", 8-s.used)
	}
	s = &slots{count: 8, maxBytes: 136}
	for has := range 4 {
		if !s.take(slow, has, 1) {
			t.Errorf("a queue with %d gets no slot", has)
		}
	}
	if s.take(slow, 4, 1) || !s.take(other, 0, 1) || !s.take(other, 1, 1) || s.take(other, 2, 1) {
		t.Error("the upper half of the slots is not for queues with less than two")
	}
	s.leave(slow)
	s.give(1)
	if isWoken(slow) || !isWoken(other) {
		t.Error("a queue that does not wait any more is woken instead of one that does")
	}
	if s = (&slots{count: 1, maxBytes: 1}); !s.take(slow, 0, 1000) {
		t.Error("a notice that is larger than all is never sent")
	}
}

// TestStumbles has a queue that waits for a slot fail to read what it has to deliver: others do not wait for it.
func TestStumbles(t *testing.T) {
	t.Parallel()
	r := &Runner{opts: Options{Logger: slog.New(slog.DiscardHandler)}, slots: slots{count: 1, maxBytes: 100}}
	busy, stuck, other := testQueue(), testQueue(), testQueue()
	stuck.base = &base{runner: r}
	stuck.hook.Store(&hook.Hook{Name: "h"})
	if !r.slots.take(busy, 0, 1) || r.slots.take(stuck, 0, 1) || r.slots.take(other, 0, 1) {
		t.Fatal("one slot is taken twice, or not at all")
	}
	r.slots.give(1)
	if stumble(stuck, errors.New("no")); !isWoken(other) || !r.slots.take(other, 0, 1) {
		t.Error("a queue waits for one whose step has failed")
	}
}

// TestLargeNoticesOfSlowReceivers has hooks whose notices are large and whose receivers take long to answer: a hook with small ones does not
// wait for them.
func TestLargeNoticesOfSlowReceivers(t *testing.T) {
	t.Parallel()
	for _, slow := range []int{6, 8, 100} {
		l := DefaultLimits()
		s := &slots{count: l.Total, maxBytes: l.Bytes}
		const large, seconds = 8<<20 + 512<<10, 14
		queues, until := make([]*queue, slow), make([][]int, slow)
		for i := range queues {
			queues[i] = testQueue()
		}
		other := testQueue()
		for now := range 200 {
			for i := range queues {
				for len(until[i]) > 0 && until[i][0] <= now {
					until[i] = until[i][1:]
					s.give(large)
				}
			}
			for i, q := range queues {
				for len(until[i]) < l.InFlight && s.take(q, len(until[i]), large) {
					until[i] = append(until[i], now+seconds)
				}
			}
			has := 0
			for has < l.InFlight && s.take(other, has, 1000) {
				has++
			}
			if has < l.InFlight {
				t.Fatalf("beside %d hooks with large notices a hook with small ones has %d under way, want %d", slow, has, l.InFlight)
			}
			for range has {
				s.give(1000)
			}
		}
	}
}

// A lot is a queue of TestNoneIsLeftOut: how large its notices are, and until when those under way are.
type lot struct {
	queue  *queue
	bytes  int64
	until  []int
	served int
}

// TestNoneIsLeftOut has queues with notices of all sizes take slots in any order: each gets some again and again, and the bounds hold.
func TestNoneIsLeftOut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &slots{count: 2 + r.IntN(5), maxBytes: 64}
		lots := make([]*lot, 1+r.IntN(8))
		for i := range lots {
			lots[i] = &lot{queue: testQueue(), bytes: int64([]int{0, 1, 2, 5, 20, 40, 100}[r.IntN(7)])}
		}
		for now := range 500 {
			r.Shuffle(len(lots), func(i, j int) { lots[i], lots[j] = lots[j], lots[i] })
			used, bytes, largest := 0, int64(0), int64(0)
			for _, l := range lots {
				for len(l.until) > 0 && l.until[0] <= now {
					l.until = l.until[1:]
					s.give(l.bytes)
				}
				for len(l.until) < 3 && s.take(l.queue, len(l.until), l.bytes) {
					l.until, l.served = append(l.until, now+3), now
				}
			}
			for _, l := range lots {
				if used, bytes = used+len(l.until), bytes+int64(len(l.until))*l.bytes; len(l.until) > 0 {
					largest = max(largest, l.bytes)
				}
				if now-l.served > 100 {
					t.Fatalf("seed %d: a queue with notices of %d bytes got no slot for 100 rounds", seed, l.bytes)
				}
			}
			if used > s.count || bytes > max(s.maxBytes, largest+s.maxBytes/4) {
				t.Fatalf("seed %d: %d deliveries of %d bytes are under way", seed, used, bytes)
			}
		}
	}
}

// TestBody holds what a message with characters that mean something in HTML looks like: as the node was written.
func TestBody(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("<&>", 10) + `"`
	got, err := bodyOf(message{ID: "m", After: json.RawMessage(text)})
	if want := `{"id":"m","hook":"","database":"","event":"","after":` + text + `,"time":0}`; err != nil || string(got) != want {
		t.Errorf("the body is %s %v, want %s", got, err, want)
	}
}

// FuzzProgress reads rows that say how far a hook is, and writes them again.
func FuzzProgress(f *testing.F) {
	row := progressRow{last: 7, bytes: 99, progress: progress{
		read: 9, gap: gap{1, 2, 2}, done: []uint64{3}, late: []*late{{location: 1 << 60, from: 4, age: time.Second}},
		pending: []*pending{{position: 5, index: 1, age: time.Minute, tries: 3}, {kind: ofGap}},
	}}
	f.Add(row.encode(0))
	f.Add([]byte{progressVersion})
	f.Fuzz(func(t *testing.T, row []byte) {
		is, err := decodeProgress(row, time.Hour)
		if err != nil {
			return
		}
		text := is.encode(time.Hour)
		again, err := decodeProgress(text, 0)
		if err != nil || string(again.encode(0)) != string(text) {
			t.Errorf("%x is written as %x, and that as %x: %v", row, text, again.encode(0), err)
		}
	})
}
