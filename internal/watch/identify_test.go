package watch_test

import (
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/store"
)

// TestIdentifyInABusyMoment: the login of a client is renewed, so that its claims differ,
// while changes wait to be handed on. The client has missed nothing, and is told nothing
// again. Only if the changes may have decided whether the new one may see them, what is
// there is told.
func TestIdentifyInABusyMoment(t *testing.T) {
	t.Parallel()
	const rules = `{"rules": {"a": {".read": "auth.uid === 'ann' && root.child('gate/' + auth.n).val() !== false"}}}`
	for name, test := range map[string]struct {
		writes []string
		taken  bool // the first one is being handed on
		want   []string
	}{
		"idle":           {nil, false, nil},
		"other data":     {[]string{`PUT /z 1`}, false, nil},
		"its data":       {[]string{`PUT /a 1`, `PUT /a 2`}, false, []string{`put {"path":"/","data":1}`, `put {"path":"/","data":2}`}},
		"handing on":     {[]string{`PUT /a 1`, `PUT /a 2`}, true, []string{`put {"path":"/","data":1}`, `put {"path":"/","data":2}`}},
		"gate of others": {[]string{`PUT /gate/1 true`, `PUT /a 2`}, false, []string{`put {"path":"/","data":2}`}},
		"hidden before":  {[]string{`PUT /gate/2 false`, `PUT /a 1`, `PUT /gate/2 true`}, false, []string{`first {"path":"/","data":1}`}},
		"hidden in hand": {[]string{`PUT /gate/2 false`, `PUT /a 1`, `PATCH / {"gate/2":true,"a":2}`}, true, []string{`first {"path":"/","data":2}`}},
		"denied":         {[]string{`PUT /a 1`, `PUT /gate/2 false`}, false, []string{`cancel`}},
		"rules":          {[]string{`PUT /a 1`, `rules`}, false, []string{`first {"path":"/","data":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, store.Options{})
			f.Rule(rules)
			f.Watches().Order()
			w := f.Watch(as(user(t, `{"uid":"ann","n":"1"}`), whole(t, "/a")))
			held := f.Watches().HoldDispatcher()
			handOn := func() {}
			for i, write := range test.writes {
				if write == "rules" {
					f.Rule(`{"rules": {".read": "auth.uid === 'ann'"}}`)
				} else {
					f.Do(write)
				}
				if i == 0 && test.taken {
					handOn = held.Take()
				}
			}
			w.Identify(user(t, `{"uid":"ann","n":"2"}`))
			handOn()
			held.Release()
			f.WaitForWatches()
			w.Expect(test.want...)
			if name == "denied" {
				return
			}
			// It is judged as the new one from here on.
			f.Do(`PUT /gate/1 false`)
			f.Do(`PUT /a 8`)
			w.Expect(`put {"path":"/","data":8}`)
			f.Do(`PUT /gate/2 false`)
			f.Do(`PUT /a 9`)
			if name != "rules" {
				w.Expect("cancel")
			}
		})
	}
}

// TestIdentifyKeepsTheOpening: an identity that changes before the first event was taken
// does not take that away.
func TestIdentifyKeepsTheOpening(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	f.Rule(`{"rules": {".read": true}}`)
	f.Watches().Order()
	f.Do(`PUT /a 1`)
	w := f.Begin(as(user(t, `{"uid":"ann"}`), whole(t, "/a")))
	held := f.Watches().HoldDispatcher()
	f.Do(`PUT /z 1`)
	w.Identify(user(t, `{"uid":"ben"}`))
	held.Release()
	f.WaitForWatches()
	w.Expect(`first {"path":"/","data":1}`)
}

// TestIdentifyByWhatWasRevoked: somebody who is alike comes by a credential that was revoked after it was judged. The watch was
// judged for the one before when that happened.
func TestIdentifyByWhatWasRevoked(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	var who [3]auth.Identity
	if err := f.SetSecrets(t.Context(), "first", "second", "third"); err != nil {
		t.Fatal(err)
	}
	for i, secret := range []string{"first", "second", "third"} {
		var err error
		if who[i], err = f.Identify(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	w := f.Watch(as(who[0], whole(t, "/a")))
	if err := f.SetSecrets(t.Context(), "first", "third"); err != nil {
		t.Fatal(err)
	}
	f.WaitForWatches()
	w.Identify(who[2])
	f.Do(`PUT /a 1`)
	w.Expect(`put {"path":"/","data":1}`)
	w.Identify(who[1])
	f.Do(`PUT /a 2`)
	w.Expect("auth_revoked")
}
