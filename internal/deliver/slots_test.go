package deliver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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
	s := &slots{count: 8, maxBytes: 100}
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
	if s.take(slow, 1, 1) {
		t.Error("a queue passes one that waits and has nothing")
	}
	if !s.take(third, 0, 10) || !isWoken(slow) {
		t.Error("the queue that was woken gets nothing, or the next is not woken")
	}
	s = &slots{count: 8, maxBytes: 100}
	if !s.take(slow, 0, 40) || s.take(third, 0, 70) || s.take(slow, 1, 5) || s.take(other, 0, 5) {
		t.Error("a queue that needs little passes one that waits and has nothing")
	}
	s = &slots{count: 8, maxBytes: 100}
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
