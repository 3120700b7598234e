package hub_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/hub"
)

// publish publishes numbers, each of so many bytes.
func publish(topic *hub.Topic[int], bytes int, numbers ...int) {
	messages := make([]hub.Message[int], len(numbers))
	for i, n := range numbers {
		messages[i] = hub.Message[int]{Message: n, Bytes: bytes}
	}
	topic.Publish(messages...)
}

// drain returns what a subscription has to say, as text.
func drain(s *hub.Subscription[int]) string {
	text := ""
	for {
		n, state := s.Next()
		switch state {
		case hub.Empty:
			return text
		case hub.Taken:
			text += fmt.Sprint(n, " ")
		case hub.Missed:
			text += "missed "
		case hub.Skipped:
			text += "skipped "
		case hub.Finished:
			return text + fmt.Sprint("finished ", n)
		}
	}
}

func expect(t *testing.T, s *hub.Subscription[int], want string) {
	t.Helper()
	if got := drain(s); got != want {
		t.Errorf("the subscription says %q, want %q", got, want)
	}
}

func nothing() {}

func expectUsed(t *testing.T, b *hub.Budget, want int64) {
	t.Helper()
	if got := b.Used(); got != want {
		t.Errorf("%d bytes are used, want %d", got, want)
	}
}

func TestSubscriptionsGetWhatFollowsThem(t *testing.T) {
	budget := hub.NewBudget(1000, 1000)
	topic := hub.NewTopic[int](budget)
	publish(topic, 10, 1) // for nobody
	expectUsed(t, budget, 0)
	a := topic.Subscribe(nothing)
	publish(topic, 10, 2, 3)
	b := topic.Subscribe(nothing)
	publish(topic, 10, 4)
	expectUsed(t, budget, 30)
	expect(t, b, "4 ")
	expectUsed(t, budget, 30) // the other has yet to take it
	expect(t, a, "2 3 4 ")
	expectUsed(t, budget, 0)
	publish(topic, 10, 5)
	expect(t, a, "5 ")
	b.Close()
	expectUsed(t, budget, 0)
	expect(t, b, "")
	if n := topic.Subscriptions(); n != 1 {
		t.Errorf("%d subscriptions, want 1", n)
	}
}

func TestTooMuchForATopic(t *testing.T) {
	budget := hub.NewBudget(10_000, 100)
	topic := hub.NewTopic[int](budget)
	slow, quick := topic.Subscribe(nothing), topic.Subscribe(nothing)
	publish(topic, 40, 1, 2)
	expect(t, quick, "1 2 ")
	publish(topic, 40, 3)
	expectUsed(t, budget, 80)
	expect(t, quick, "3 ")
	expect(t, slow, "missed ") // also of 2 and 3, which are there still: it would be no use
	expectUsed(t, budget, 0)
	publish(topic, 40, 4)
	expect(t, slow, "4 ")
	publish(topic, 1000, 5) // one message is always kept
	expect(t, slow, "5 ")
	expect(t, quick, "missed ")
	publish(topic, 50, 6, 7)
	expect(t, slow, "6 7 ") // exactly as much as there may be
	quick.Close()
	expectUsed(t, budget, 0)
}

func TestTooManyForATopic(t *testing.T) {
	budget := hub.NewBudget(1<<40, 1<<30)
	topic := hub.NewTopic[int](budget)
	s := topic.Subscribe(nothing)
	for i := range 16<<10 + 1 {
		publish(topic, 0, i)
	}
	expect(t, s, "missed ")
}

func TestTheHeaviestTopicGivesWay(t *testing.T) {
	budget := hub.NewBudget(1000, 900)
	light, heavy, last := hub.NewTopic[int](budget), hub.NewTopic[int](budget), hub.NewTopic[int](budget)
	ofLight, ofHeavy, ofLast := light.Subscribe(nothing), heavy.Subscribe(nothing), last.Subscribe(nothing)
	publish(light, 300, 1)
	publish(heavy, 500, 2)
	publish(last, 200, 3)
	expectUsed(t, budget, 1000)
	publish(last, 1, 4)
	expectUsed(t, budget, 501)
	expect(t, ofHeavy, "missed ")
	expect(t, ofLight, "1 ")
	expect(t, ofLast, "3 4 ")
	expectUsed(t, budget, 0)
	publish(heavy, 2000, 5) // more than there may be at all
	expect(t, ofHeavy, "missed ")
	expectUsed(t, budget, 0)
}

func TestSkip(t *testing.T) {
	budget := hub.NewBudget(1000, 100)
	topic := hub.NewTopic[int](budget)
	var woken int
	a := topic.Subscribe(func() { woken++ })
	b := topic.Subscribe(nothing)
	publish(topic, 10, 1)
	a.Skip()
	if woken != 1 {
		t.Errorf("woken %d times, want 1", woken)
	}
	publish(topic, 10, 2)
	expect(t, b, "1 2 ")
	// What follows the skip is given up, too, when it is taken so late: whoever
	// reads the tree again then has it.
	expect(t, a, "skipped ")
	expectUsed(t, budget, 0)
	publish(topic, 10, 3)
	expect(t, a, "3 ")
	a.Skip()
	publish(topic, 60, 4, 5) // and one of them is dropped
	expect(t, a, "skipped ")
	topic.Skip()
	publish(topic, 10, 6)
	expect(t, a, "skipped ")
	expect(t, b, "skipped ")
	a.Skip()
	a.Skip()
	expect(t, a, "skipped ")
	expectUsed(t, budget, 0)
}

func TestFinish(t *testing.T) {
	budget := hub.NewBudget(1000, 100)
	topic := hub.NewTopic[int](budget)
	var woken int
	s := topic.Subscribe(func() { woken++ })
	other := topic.Subscribe(nothing)
	publish(topic, 10, 1)
	s.Finish(-1)
	s.Finish(-2)
	publish(topic, 10, 2)
	if woken == 0 {
		t.Error("it is not woken")
	}
	expect(t, s, "1 finished -1")
	expect(t, s, "finished -1")
	expect(t, other, "1 2 ")
	expectUsed(t, budget, 0)
	if n := topic.Subscriptions(); n != 1 {
		t.Errorf("%d subscriptions, want 1", n)
	}
	s.Close()
	s.Skip()
	s.Finish(-3)

	for name, before := range map[string]func(s *hub.Subscription[int]){
		"missed":  func(*hub.Subscription[int]) { publish(topic, 60, 3, 4, 5) },
		"skipped": func(s *hub.Subscription[int]) { s.Skip() },
		"nothing": func(*hub.Subscription[int]) {},
	} {
		s := topic.Subscribe(nothing)
		before(s)
		s.Finish(-4)
		publish(topic, 10, 6)
		if got := drain(s); got != "finished -4" {
			t.Errorf("after %s: %q", name, got)
		}
	}
	other.Close()
	expectUsed(t, budget, 0)
}

func TestCloseGivesBackMemory(t *testing.T) {
	budget := hub.NewBudget(1000, 500)
	topic := hub.NewTopic[int](budget)
	subscriptions := make([]*hub.Subscription[int], 5)
	for i := range subscriptions {
		subscriptions[i] = topic.Subscribe(nothing)
		publish(topic, 10, i)
	}
	subscriptions[2].Finish(-1)
	for _, i := range []int{1, 4, 0, 3, 2} {
		// Number i began before message i.
		oldest := slices.IndexFunc(subscriptions, func(s *hub.Subscription[int]) bool { return s != nil })
		expectUsed(t, budget, 50-10*int64(oldest))
		subscriptions[i].Close()
		subscriptions[i].Close()
		subscriptions[i] = nil
	}
	expectUsed(t, budget, 0)
	if n := topic.Subscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

func TestWakeTellsEverybody(t *testing.T) {
	topic := hub.NewTopic[int](hub.NewBudget(1000, 1000))
	var woken []int
	var first *hub.Subscription[int]
	for i := range 3 {
		s := topic.Subscribe(func() { woken = append(woken, i); first.Next() }) // no lock is held
		if i == 0 {
			first = s
		}
	}
	first.Close()
	scratch := topic.Wake(nil)
	slices.Sort(woken)
	if !slices.Equal(woken, []int{1, 2}) {
		t.Errorf("woken: %v, want 1 and 2", woken)
	}
	if cap(scratch) < 2 {
		t.Error("the list is not there to be used again")
	}
}

// TestTopicLikeLists does random things to topics and compares with a list for
// each subscription.
func TestTopicLikeLists(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	budget := hub.NewBudget(1<<30, 200)
	topic := hub.NewTopic[int](budget)
	type twin struct {
		*hub.Subscription[int]
		list    []int // what it has to take
		skipped bool
	}
	var twins []*twin
	var kept []int // the messages that no more than 200 bytes leave
	const bytes = 10
	for step := range 50_000 {
		switch n := rng.IntN(20); {
		case n == 0 && len(twins) < 8:
			twins = append(twins, &twin{Subscription: topic.Subscribe(nothing)})
		case n == 1 && len(twins) > 0:
			i := rng.IntN(len(twins))
			twins[i].Close()
			twins = slices.Delete(twins, i, i+1)
		case n == 2 && len(twins) > 0:
			s := twins[rng.IntN(len(twins))]
			s.Skip()
			s.list, s.skipped = nil, true
		case n < 9 && len(twins) > 0:
			publish(topic, bytes, step)
			kept = append(kept, step)
			for _, s := range twins {
				s.list = append(s.list, step)
			}
		case len(twins) > 0:
			s := twins[rng.IntN(len(twins))]
			oldest := kept[max(0, len(kept)-200/bytes):]
			got, state := s.Next()
			want, wantState := 0, hub.Taken
			switch {
			case s.skipped:
				wantState, s.list, s.skipped = hub.Skipped, nil, false
			case len(s.list) == 0:
				wantState = hub.Empty
			case s.list[0] < oldest[0]:
				wantState, s.list = hub.Missed, nil
			default:
				want, s.list = s.list[0], s.list[1:]
			}
			if got != want || state != wantState {
				t.Fatalf("seed %d, step %d: %d, state %d; want %d, state %d", seed, step, got, state, want, wantState)
			}
			if state == hub.Taken && s.Drained() != (len(s.list) == 0) {
				t.Fatalf("seed %d, step %d: drained %t, but %d are left", seed, step, s.Drained(), len(s.list))
			}
		}
	}
	for _, s := range twins {
		s.Close()
	}
	expectUsed(t, budget, 0)
}

// TestTopicsUnderLoad has publishers and readers run at once. Every reader gets
// numbers that rise by one, but where it is told that it missed some.
func TestTopicsUnderLoad(t *testing.T) {
	const topics, readers, messages = 3, 4, 5000
	budget := hub.NewBudget(20_000, 10_000)
	var publishing, reading sync.WaitGroup
	var missed atomic.Int64
	for range topics {
		topic := hub.NewTopic[int](budget)
		done := make(chan struct{})
		for i := range readers {
			woken := make(chan struct{}, 1)
			s := topic.Subscribe(func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})
			reading.Go(func() {
				defer s.Close()
				last, jumps := -1, true
				for {
					n, state := s.Next()
					switch state {
					case hub.Empty:
						select {
						case <-woken:
						case <-done:
							s.Finish(messages)
						}
					case hub.Missed, hub.Skipped:
						jumps = true
						missed.Add(1)
					case hub.Finished:
						return
					case hub.Taken:
						if n <= last || n != last+1 && !jumps {
							t.Errorf("%d follows %d", n, last)
						}
						last, jumps = n, false
						if i == 0 && n%1000 == 999 {
							select { // this one is slow
							case <-woken:
							case <-done: // nobody will wake it any more
							}
						}
					}
				}
			})
		}
		publishing.Go(func() {
			defer close(done)
			var scratch []*hub.Subscription[int]
			for n := range messages {
				publish(topic, 100, n)
				scratch = topic.Wake(scratch)
			}
		})
	}
	publishing.Wait()
	reading.Wait()
	expectUsed(t, budget, 0)
	t.Logf("missed %d times", missed.Load())
}

func BenchmarkPublish(b *testing.B) {
	for _, subscriptions := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", subscriptions), func(b *testing.B) {
			topic := hub.NewTopic[int](hub.NewBudget(1<<30, 1<<20))
			list := make([]*hub.Subscription[int], subscriptions)
			for i := range list {
				list[i] = topic.Subscribe(nothing)
			}
			var scratch []*hub.Subscription[int]
			b.ReportAllocs()
			for b.Loop() {
				topic.Publish(hub.Message[int]{Message: 1, Bytes: 100})
				scratch = topic.Wake(scratch)
				for _, s := range list {
					if _, state := s.Next(); state != hub.Taken {
						b.Fatalf("state %d", state)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*subscriptions), "ns/subscription")
		})
	}
}
