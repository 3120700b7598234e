package outbox

import "testing"

// TestQueueThatIsNeverEmpty: the queue of a server that is behind all the time does not grow with what went through it.
func TestQueueThatIsNeverEmpty(t *testing.T) {
	r := &runners{} // none runs: the test takes
	one, other := &Client{}, &Client{}
	r.run(one)
	for range 1_000_000 {
		r.run(other)
		r.take()
	}
	if waiting := len(r.queue) - r.next; waiting != 1 || cap(r.queue) > keptQueue {
		t.Errorf("%d client waits in a queue of %d places", waiting, cap(r.queue))
	}
}
