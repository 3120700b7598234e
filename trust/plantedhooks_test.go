//go:build unix

package trust_test

import (
	"fmt"
	"strings"
	"testing"
)

// A hookScript makes books of hooks by hand, with one hook.
type hookScript struct {
	books hookBooks
	now   int64
	life  int
}

// tick returns the next time.
func (s *hookScript) tick() int64 {
	s.now++
	return s.now
}

// wrote notes a write that was acknowledged.
func (s *hookScript) wrote(id string, keys ...string) {
	s.books.writes = append(s.books.writes, hookWrite{id: id, keys: keys, deletes: id == "", sent: s.tick(), acked: s.tick()})
}

// came notes a delivery that was answered by 200, and returns it.
func (s *hookScript) came(position uint64, key, before, after string) *attempt {
	value := func(id string) []byte {
		if id == "" {
			return []byte("null")
		}
		return fmt.Appendf(nil, `{"w":%q}`, id)
	}
	d := delivery{
		ID: fmt.Sprintf("msg_1-1-%d-%s", position, key), Hook: "orders", Path: "/orders/" + key, Params: map[string]string{"id": key},
		Event: eventOf(before, after), Before: value(before), After: value(after), Position: position,
	}
	a := attempt{delivery: d, body: fmt.Sprint(d.ID, before, after), life: s.life, arrived: s.tick(), decided: s.tick(), over: s.tick(), flushed: s.tick()}
	s.books.attempts = append(s.books.attempts, a)
	return &s.books.attempts[len(s.books.attempts)-1]
}

// TestHooksFindsBugs shows that the judge of webhooks notices what contradicts each promise, and
// nothing else.
func TestHooksFindsBugs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(s *hookScript) // after two writes of a, of which the first was delivered
		want string              // in the problem; none if all is well
	}{
		{"all is well", func(s *hookScript) { s.came(2, "a", "1", "2") }, ""},
		{"loses the last", func(*hookScript) {}, "acknowledged and not delivered"},
		{"loses one between", func(s *hookScript) {
			s.wrote("3", "a")
			s.came(3, "a", "2", "3")
			s.books.final["a"] = "3"
		}, "does not follow"},
		{"loses a delete", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.wrote("", "a")
			s.books.final["a"] = ""
		}, "the last delivery has"},
		{"loses a part of a commit", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.wrote("3", "a", "b")
			s.came(3, "a", "2", "3")
			s.books.final["a"] = "3"
		}, `3 of [a b] was delivered at`},
		{"invents a change", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.came(3, "a", "2", "x")
			s.books.final["a"] = "x"
		}, "never written there"},
		{"invents a delete", func(s *hookScript) {
			s.came(2, "a", "1", "")
			s.came(3, "a", "", "2")
		}, "1 deletes were delivered"},
		{"names the wrong event", func(s *hookScript) { s.came(2, "a", "1", "2").Event = "create" }, "should be"},
		{"says it in two ways", func(s *hookScript) {
			s.came(2, "a", "1", "2").decided = 0
			s.came(2, "a", "1", "2").body = "another"
		}, "and again as"},
		{"puts two writes into one commit", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.wrote("3", "b")
			s.came(2, "b", "", "3")
			s.books.final["b"] = "3"
		}, "is of two writes"},
		{"commits against the order of time", func(s *hookScript) {
			s.books.writes[1].sent, s.books.writes[0].sent, s.books.writes[0].acked = 1, 5, 6
			s.books.writes[1].acked = 2
			s.came(2, "a", "1", "2")
		}, "has an earlier one"},
		{"does not wait for the one before", func(s *hookScript) {
			s.books.attempts[0].decided, s.books.attempts[0].flushed = 0, 0
			s.came(2, "a", "1", "2")
			s.came(1, "a", "", "1")
		}, "2 came before 1 was done"},
		{"makes one again after a later one", func(s *hookScript) {
			s.books.attempts[0].flushed = 0 // its answer was lost
			s.came(2, "a", "1", "2")
			s.came(1, "a", "", "1")
		}, "1 came after 2 from the same server"},
		{"makes one again after it was killed", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.life++
			s.came(1, "a", "", "1")
			s.came(2, "a", "1", "2")
		}, ""},
		{"makes one again after an answer", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.came(2, "a", "1", "2")
		}, "though its answer had come"},
		{"makes one again whose answer was lost", func(s *hookScript) {
			s.came(2, "a", "1", "2").flushed = 0
			s.came(2, "a", "1", "2")
		}, ""},
		{"makes one again after an end in order", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.books.stopped[s.life] = s.tick()
			s.life++
			s.came(2, "a", "1", "2")
		}, "though its answer had come"},
		{"makes two of one location at a time", func(s *hookScript) {
			a := s.came(2, "a", "1", "2")
			a.decided, a.flushed = 0, 0
			a.over = s.now + 10
			s.came(2, "a", "1", "2")
		}, "while 2 was under way"},
		{"makes too many at a time", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			for i := range maxUnderWay + 1 {
				key := fmt.Sprint("key", i)
				s.wrote(key, key)
				s.books.final[key] = key
				s.came(uint64(10+i), key, "", key).decided = 1000
			}
		}, "33 deliveries were under way"},
		{"tells of what is elsewhere", func(s *hookScript) {
			s.came(2, "a", "1", "2")
			s.came(3, "elsewhere", "", "2")
		}, "of no location that was written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &hookScript{books: hookBooks{
				final: map[string]string{"a": "2", "b": ""}, stopped: map[int]int64{}, hooks: map[string]bool{"orders": true},
			}}
			s.wrote("1", "a")
			s.wrote("2", "a")
			s.came(1, "a", "", "1")
			c.do(s)
			problems := strings.Join(s.books.judge(), "\n")
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("found %q, want %q", problems, c.want)
			}
		})
	}
}
