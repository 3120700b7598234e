package watch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/store"
)

// A reader is a client who tries out every resume position. It knows at which
// positions it could have read.
type reader struct {
	*fixture
	clock *handClock
	who   auth.Identity
	at    string
	could map[uint64]bool
	last  uint64
}

func newReader(t *testing.T, who auth.Identity, at string) *reader {
	r := &reader{clock: &handClock{}, who: who, at: at, could: make(map[uint64]bool)}
	r.fixture = openWith(t, store.Options{}, nil, r.clock)
	return r
}

// step takes a step of a history: a request, `rules` with a document, or `wait` with
// a duration. Then the reader tries to read.
func (r *reader) step(step string) {
	r.T.Helper()
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "rules":
		position, err := r.SetRules(context.Background(), rest)
		if err != nil {
			r.T.Fatal(err)
		}
		r.last = position
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			r.T.Fatal(err)
		}
		r.clock.advance(d)
	default:
		r.last = r.Do(step).Position
	}
	s := r.View()
	defer s.Close()
	if _, err := s.AllowRead(r.who, path(r.T, r.at), nil); err == nil {
		r.could[r.last] = true
	}
}

// resumable tries every position, and checks that each change that is told is one
// that the reader could have read at its position. It returns the first position after
// which a watch went on by the change log.
func (r *reader) resumable() (first uint64) {
	r.T.Helper()
	first = r.last + 1
	for behind := r.last; ; behind-- {
		if resumed := r.try(behind); resumed && behind+1 != first {
			r.T.Errorf("a watch goes on after %d, but not after %d", behind, behind+1)
		} else if resumed {
			first = behind
		}
		if behind == 0 {
			return first
		}
	}
}

// try resumes after a position. It reports whether the watch went on by the change log.
func (r *reader) try(behind uint64) (resumed bool) {
	r.T.Helper()
	req := as(r.who, whole(r.T, r.at))
	req.Resume, req.Behind = true, behind
	w := r.Begin(req)
	defer w.Close()
	resumed = true
	for {
		e, ok := w.Next()
		if !ok {
			return resumed
		}
		told := describe(r.T, e)
		if e.Content != nil {
			resumed = false
		} else if !r.could[e.Position] {
			r.T.Errorf("after %d the reader is told of %d, which it could not have read then: %s", behind, e.Position, told)
		}
	}
}

// TestResumeTellsNothingThatWasHidden: whatever a rule reads to open a location, a
// resume tells of no change that was made while the location was closed.
func TestResumeTellsNothingThatWasHidden(t *testing.T) {
	large := `"` + strings.Repeat("x", 70_000) + `"`
	for rule, c := range map[string]struct{ opens, closes string }{
		`root.child('g').val() === 1`:                                      {`PUT /g 1`, `PUT /g 0`},
		`root.child('g').exists()`:                                         {`PUT /g 1`, `DELETE /g`},
		`root.hasChild('g')`:                                               {`PUT /g/x 1`, `DELETE /g/x`},
		`root.child('g').hasChildren()`:                                    {`PUT /g {"x":{"y":1}}`, `PUT /g 1`},
		`root.child('g').hasChildren(['x', 'y'])`:                          {`PATCH /g {"x":1,"y":1}`, `DELETE /g/y`},
		`root.child('g').isString()`:                                       {`PUT /g "s"`, `PUT /g 1`},
		`root.child('g').isNumber()`:                                       {`PUT /g 1`, `PUT /g true`},
		`root.child('g').isBoolean()`:                                      {`PUT /g true`, `PUT /g {"x":true}`},
		`root.child('g').getPriority() === 1`:                              {`PUT /g/.priority 1`, `PUT /g/.priority 2`},
		`root.child('g').val().length === 3`:                               {`PUT /g "abc"`, `PUT /g "abcd"`},
		`root.child('g').val().matches(/^a/)`:                              {`PUT /g "abc"`, `PUT /g "xyz"`},
		`root.child('g/x').parent().hasChild('y')`:                         {`PUT /g/y 1`, `PUT /g/y null`},
		`root.child('m').child(auth.uid).val() === true`:                   {`PATCH / {"m/ann":true,"other":1}`, `PUT /m {"ben":true}`},
		`root.child(root.child('g').val()).val() === 'on'`:                 {`PATCH / {"g":"x","x":"on","y":"off"}`, `PUT /g "y"`},
		`!root.child('g').exists()`:                                        {`DELETE /g`, `PUT /g ` + large},
		`root.child('g').val() !== 'no'`:                                   {`PUT /g ` + large, `PUT /g "no"`},
		`root.child('g').val() === 1 || root.child('h').val() === 1`:       {`PATCH / {"g":1,"h":0}`, `PUT /g 0`},
		`root.child('g').val() === 1 ? true : root.child('h').val() === 1`: {`PATCH / {"g":0,"h":1}`, `PUT /h 0`},
		`data.parent().child('g').val() === 1`:                             {`PATCH / {"g":1}`, `PUT /g 2`},
	} {
		t.Run(rule, func(t *testing.T) {
			r := newReader(t, user(t, `{"uid":"ann"}`), "/a")
			r.step(`rules {"rules": {"a": {".read": "` + rule + `"}}}`)
			for _, step := range []string{
				`PUT /g {"z":"first"}`, `PUT /b 1`, c.opens, `PUT /a/n "early"`, c.closes,
				`PUT /a {"n":"hidden","m":"hidden"}`, `PATCH / {"a/n":"hidden too","b":2}`, c.opens,
			} {
				r.step(step)
			}
			opened := r.last
			r.step(`PUT /a/n "shown"`)
			r.step(`PUT /b 2`)
			r.step(`PUT /a/n "shown too"`)
			if first := r.resumable(); first != opened {
				t.Errorf("a watch goes on after %d and later, want %d: where the location was last opened", first, opened)
			}
		})
	}
}

// TestResumeByOtherMeans: what opens and closes a location beside the data.
func TestResumeByOtherMeans(t *testing.T) {
	start := `PUT /a/n "first"`
	hour := fmt.Sprint(time.Hour.Milliseconds())
	for name, c := range map[string]struct {
		steps   []string
		resumes int // after how many of the last steps a watch goes on
	}{
		"nothing": {[]string{
			`rules {"rules": {"a": {".read": "auth.uid === 'ann'"}}}`, start, `PUT /a/n 2`, `PUT /b 1`, `PUT /a/n 3`}, 5},
		"the rules": {[]string{
			`rules {"rules": {"a": {".read": false}}}`, start, `PUT /a/n "hidden"`,
			`rules {"rules": {"a": {".read": true}}}`, `PUT /a/n 2`}, 2},
		"rules above": {[]string{
			`rules {"rules": {".read": "root.child('all').val() === true", "a": {".read": false}}}`, start, `PUT /a/n "hidden"`,
			`PUT /all true`, `PUT /a/n 2`}, 2},
		"the time opens": {[]string{
			`rules {"rules": {"a": {".read": "now > root.child('t').val() + ` + hour + `"}}}`, `PUT /t {".sv":"timestamp"}`,
			start, `PUT /a/n "hidden"`, `PUT /a/n 2`, `wait 2h`, `PUT /a/n 3`, `PUT /a/n 4`}, 1},
		"the time closes and opens": {[]string{
			`rules {"rules": {"a": {".read": "now < root.child('t').val() + ` + hour + ` || now > root.child('t').val() + 3 * ` + hour + `"}}}`,
			`PUT /t {".sv":"timestamp"}`, start, `wait 2h`, `PUT /a/n "hidden"`, `PUT /a/n 3`, `wait 2h`, `PUT /a/n 4`}, 1},
		"the time, read by a rule that does not grant": {[]string{
			`rules {"rules": {".read": "now < 1", "a": {".read": "auth !== null"}}}`, start, `PUT /a/n 2`, `PUT /a/n 3`}, 1},
		"the time, which nobody asks for below what is open": {[]string{
			`rules {"rules": {".read": "now < 1", "a": {".read": true}}}`, start, `PUT /a/n 2`, `PUT /a/n 3`}, 4},
		"the time opened, then nothing": {[]string{
			`rules {"rules": {"a": {".read": "now > root.child('t').val() + ` + hour + `"}}}`, `PUT /t {".sv":"timestamp"}`,
			start, `PUT /a/n "hidden"`, `wait 2h`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, user(t, `{"uid":"ann"}`), "/a")
			for _, step := range c.steps {
				r.step(step)
			}
			if first, want := r.resumable(), r.last+1-uint64(c.resumes); first != want {
				t.Errorf("a watch goes on after %d and later, want %d", first, want)
			}
		})
	}
}

// TestCatchUpTellsNothingThatWasHidden: a watch that fell behind while the time
// closed its location, and opened it again, is told what is there now.
func TestCatchUpTellsNothingThatWasHidden(t *testing.T) {
	r := newReader(t, user(t, `{"uid":"ann"}`), "/a")
	hour := fmt.Sprint(time.Hour.Milliseconds())
	r.step(`rules {"rules": {"a": {".read": "now < root.child('t').val() + ` + hour + ` || now > root.child('t').val() + 3 * ` + hour + `"}}}`)
	r.step(`PUT /t {".sv":"timestamp"}`)
	r.step(`PUT /a "first"`)
	w := r.Watch(as(r.who, whole(t, "/a")))
	held := r.Watches().HoldDispatcher()
	r.step(`wait 2h`)
	r.step(`PUT /a "hidden"`)
	r.step(`PUT /a "shown"`)
	r.step(`wait 2h`)
	w.Skip()
	if e, ok := w.Next(); !ok || describe(t, e) != `first {"path":"/","data":"shown"}` {
		t.Errorf("a watch that catches up is told %v first", e)
	}
	held.Take()()
	held.Release()
	w.Expect()
}
