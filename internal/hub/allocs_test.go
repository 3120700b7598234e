package hub_test

import (
	"testing"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/tree"
)

// TestConcernedDoesNotAllocate: every write asks who watches its path.
func TestConcernedDoesNotAllocate(t *testing.T) {
	var register hub.Register[int]
	p := tree.Path{}.Child("rooms").Child("r1")
	register.Add(p, 1)
	p = p.Child("messages").Child("m1")
	if allocs := testing.AllocsPerRun(100, func() { register.Concerned(p, func(int) {}) }); allocs > 0 {
		t.Errorf("a search takes %v allocations, want none", allocs)
	}
}

// TestPublishDoesNotAllocate for each subscription.
func TestPublishDoesNotAllocate(t *testing.T) {
	topic := hub.NewTopic[int](hub.NewBudget(1<<30, 1<<20))
	list := make([]*hub.Subscription[int], 100)
	for i := range list {
		list[i] = topic.Subscribe(nothing)
	}
	var scratch []*hub.Subscription[int]
	if allocs := testing.AllocsPerRun(100, func() {
		topic.Publish(hub.Message[int]{Message: 1, Bytes: 100})
		scratch = topic.Wake(scratch)
		for _, s := range list {
			s.Next()
		}
	}); allocs > 2 {
		t.Errorf("a message to 100 subscriptions takes %v allocations, want at most 2", allocs)
	}
}
