package store

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
)

// oddChildren are those that are spelled in another way in JSON, or whose order is not that of their bytes.
var oddChildren = []string{"7", "007", "-3", `"`, `k"`, `k",`, `k\`, `k\"x`, "k:true,", "k\u00e9", "\U0001f600", "\ue000"}

// randomRelisting writes something that may change the keys of a list, or not: it edits, adds, inserts, deletes, replaces.
func randomRelisting(s *stand, rng *rand.Rand, at string, next *int) {
	key := func() string {
		if rng.IntN(4) == 0 {
			return oddChildren[rng.IntN(len(oddChildren))]
		}
		return fmt.Sprintf("k%04d", rng.IntN(*next+3))
	}
	switch rng.IntN(16) {
	case 0:
		s.put(at+"/"+key(), `null`)
	case 1:
		s.put(at+"/"+key()+"/text", `null`)
	case 2:
		s.put(at, children(1+rng.IntN(5)))
	case 3:
		s.put(at[:1], []string{`null`, `{"l":{"k0001":{"text":"a"},"k0002":5}}`, `7`}[rng.IntN(3)])
	case 4:
		s.patch(at, fmt.Sprintf(`{%q:{"text":"new"},%q:null}`, key(), "z"+key()))
	case 5:
		s.put(at+"/"+key(), fmt.Sprintf(`{"text":"inserted","n":%d,".priority":1}`, *next))
	case 6:
		s.put(at+"/"+key()+"/deep/deeper", `{"x":"long enough to be split","y":"and longer"}`)
	case 7, 8, 9, 10:
		*next++
		s.put(fmt.Sprintf("%s/k%04d", at, *next), fmt.Sprintf(`{"text":"pushed","n":%d}`, *next))
	default:
		s.put(at+"/"+key()+"/text", fmt.Sprintf(`"edited %d"`, *next))
	}
}

// TestRelisting: what is remembered of the keys of a node is what the rows show, in every view, whatever is written.
func TestRelisting(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(7, uint64(s.opts.ChunkBytes)))
		held := []*View{s.View()}
		next, recalled, resumed := 0, 0, 0
		places := []string{"a/l", "b/l", "a", "b", "a/l/k0001", "/", "a/l/k0002/deep"}
		for range 600 {
			randomRelisting(s, rng, places[rng.IntN(2)], &next)
			if held = append(held, s.View()); len(held) > 4 {
				held[0].Release()
				held = held[1:]
			}
			for range 4 {
				r := reading{at: parsePath(s, places[rng.IntN(len(places))]), keys: true}
				view := held[max(rng.IntN(len(held)), rng.IntN(len(held)))]
				begun := s.memos.Listing(&memo.Key{ID: s.id, Path: r.at, Shallow: true}, view.number)
				known, err := r.check(view, s.id)
				if err != nil {
					s.Fatal(err)
				}
				switch {
				case known:
					recalled++
				case begun.Known():
					resumed++
				}
			}
		}
		for _, v := range held {
			v.Release()
		}
		s.Logf("%d lists were recalled, %d gone on with", recalled, resumed)
		if (recalled == 0 || resumed == 0 && !*byRecords) && s.opts.ChunkBytes < 64 {
			s.Errorf("%d lists were recalled and %d gone on with, want some of each", recalled, resumed)
		}
	})
}

// TestSingleChildren: a list whose node gets or loses a child among the others is amended, without a look at the rows; until there
// were too many, or the last one went.
func TestSingleChildren(t *testing.T) {
	s := newStand(t, Options{})
	s.put("rooms/a", children(500))
	steps := func() int {
		view := s.View()
		defer view.Release()
		p, err := view.Tree(s.id).Shallow(parsePath(t, "rooms/a"))
		if err != nil {
			t.Fatal(err)
		}
		if p.rows == nil {
			return 0
		}
		defer func() { _ = p.Close() }()
		if err := p.PrintTo(io.Discard); err != nil {
			t.Fatal(err)
		}
		return p.rows.Moved()
	}
	steps()
	steps()
	check := func(what string, most int) {
		view := s.View()
		defer view.Release()
		if n := steps(); n > most {
			t.Errorf("after %s the list takes %d steps, want at most %d", what, n, most)
		}
		if _, err := (reading{at: parsePath(t, "rooms/a"), keys: true}).check(view, s.id); err != nil {
			t.Error(err)
		}
	}
	s.put("rooms/a/k000002x", `"among others"`)
	check("a child came", 0)
	s.put("rooms/a/k000002x", `null`)
	check("one went", 0)
	s.put("rooms/a/7", `"before all others"`)
	check("one came first", 0)
	for i := range 16 {
		s.put(fmt.Sprintf("rooms/a/k000003x%d", i), `1`)
	}
	check("sixteen came", 0)
	check("nothing", 0)
	for i := range 17 {
		s.put(fmt.Sprintf("rooms/a/k000004x%d", i), `1`)
	}
	check("seventeen came", 2000)
	check("nothing", 2000)
	check("nothing", 0)
	last := lastKey(s, "rooms/a")
	s.put("rooms/a/"+last, `null`)
	check("the last one went", 2000)
}

// lastKey returns the last key of an object.
func lastKey(s *stand, at string) string {
	s.Helper()
	view := s.View()
	defer view.Release()
	text, _, err := reading{at: parsePath(s, at), keys: true}.text(view, s.id, &seek.Cost{})
	if err != nil {
		s.Fatal(err)
	}
	keys := strings.Split(text, `"`)
	return keys[len(keys)-2]
}

// TestListOfAFailedCommit: a child whose commit fails is not listed, and one that was to go stays.
func TestListOfAFailedCommit(t *testing.T) {
	for _, record := range []bool{false, true} {
		s := &failing{newStand(t, Options{})}
		s.put("a", children(500))
		r := reading{at: parsePath(t, "a"), keys: true}
		for _, child := range []struct{ at, body string }{{"a/k000002x", `"among others"`}, {"a/k000003", `null`}} {
			for i := range 3 {
				if i == 2 {
					s.refuse(record, s.build(putWrite(t, child.at, child.body)))
					s.frontier = batch.Frontier{}
					s.put("b", `1`) // the next view
				}
				view := s.View()
				if _, err := r.check(view, s.id); err != nil {
					t.Errorf("after a put at %s was refused: %v", child.at, err)
				}
				view.Release()
			}
		}
	}
}

// TestEditsKeepKeys: of a list whose children are edited the keys stay known, and one that grows at its end is gone on with.
func TestEditsKeepKeys(t *testing.T) {
	if *byRecords {
		t.Skip("the effect of a commit does not tell which keys it keeps")
	}
	s := newStand(t, Options{})
	s.put("rooms/a", children(500))
	keys := func() (string, bool) {
		view := s.View()
		defer view.Release()
		text, recalled, err := reading{at: parsePath(t, "rooms/a"), keys: true}.text(view, s.id, nil)
		if err != nil {
			t.Fatal(err)
		}
		return text, recalled
	}
	keys()
	before, _ := keys()
	edited := firstKey(before)
	for i := range 3 {
		s.put("rooms/a/"+edited, fmt.Sprintf(`"edited %d"`, i))
		if text, recalled := keys(); !recalled || text != before {
			t.Errorf("after an edit the keys are recalled: %t; they are %.40s, want %.40s", recalled, text, before)
		}
	}
	k := memo.Key{ID: s.id, Path: parsePath(t, "rooms/a"), Shallow: true}
	for i := range 3 {
		s.put(fmt.Sprintf("rooms/a/zz%d", i), `"pushed"`)
		view := s.View()
		begun := s.memos.Listing(&k, view.number)
		view.Release()
		text, _ := keys()
		if i > 0 && !begun.Known() { // with the first, the end of the list is not known yet
			t.Error("a child after all others makes the list be forgotten")
		}
		if want := fmt.Sprintf(`,"zz%d":true}`, i); !strings.HasSuffix(text, want) {
			t.Errorf("the keys end with %s, want %s", text[len(text)-20:], want)
		}
		if i == 0 {
			keys() // remembered again
		}
	}
	if text, recalled := keys(); !recalled || strings.Count(text, ":true") != 503 {
		t.Errorf("after all that the keys are recalled: %t, and there are %d", recalled, strings.Count(text, ":true"))
	}
}

// firstKey returns the first key of an object.
func firstKey(text string) string { return strings.Split(text, `"`)[1] }
