package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// This file holds lists of keys against the world of sightmodel_test.go: children that come and go in commits of which views show several at once,
// late or not yet, and in commits that are refused.

// relist makes a write by which children of a node come and go, or only change. It does not wait for a view.
func (w *sightWorld) relist() {
	var members []string
	for _, n := range w.rng.Perm(30)[:1+w.rng.IntN(3)*w.rng.IntN(2)] {
		member := []string{`":%d`, `":null`, `/role":%d`, `/role":null`, `":{"role":%d,"x":"long enough to be split"}`}[w.rng.IntN(5)]
		members = append(members, fmt.Sprintf(`"k%02d`, n)+strings.ReplaceAll(member, "%d", fmt.Sprint(w.position)))
	}
	body := "{" + strings.Join(members, ",") + "}"
	change, err := tree.DecodePatch(strings.NewReader(body), parsePath(w, "a"), tree.DecodeOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if w.rng.IntN(20) == 0 {
		w.refuse(change)
		return
	}
	if err := w.truth.Patch([]string{"a"}, []byte(body), 0); err != nil {
		w.Fatal(err)
	}
	w.note()
	if err := w.Commit(w.build(change), forgotten{}); err != nil {
		w.Fatal(err)
	}
	w.position++
}

// refuse has a write refused, as a store does that is being closed.
func (w *sightWorld) refuse(change tree.Write) {
	p := &w.pipeline
	shut := func(is bool) {
		p.gate.Lock()
		defer p.gate.Unlock()
		p.shut = is
	}
	b := w.build(change)
	shut(true)
	defer shut(false)
	if err := w.Store.Commit(b, forgotten{}); err == nil {
		w.Fatal("a commit that was to be refused was made")
	}
}

// list compares the keys of a node in a view with what the world knows.
func (r *sightReader) list() error {
	v := r.held[r.rng.IntN(len(r.held))]
	at := parsePath(r.world, []string{"a", "a", "/", fmt.Sprintf("a/k%02d", r.rng.IntN(30))}[r.rng.IntN(4)])
	got, recalled, err := reading{at: at, keys: true}.text(v.View, v.id, nil)
	if err != nil {
		return err
	}
	if recalled {
		r.known++
	}
	n := v.state.At(at)
	want := string(tree.AppendJSON(nil, n, tree.Plain))
	if n.IsObject() {
		keys := []byte{'{'}
		for key := range n.Children() {
			keys = append(tree.AppendString(keys, key), ":true,"...)
		}
		want = string(keys[:len(keys)-1]) + "}"
	}
	if got != want {
		return fmt.Errorf("the keys of %s in view %d of database %d are %s, want %s", at, v.number, v.id, got, want)
	}
	return nil
}

// TestListsAgainstModel: lists of keys are what the writes have left, in every view.
func TestListsAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	for i, limit := range []int{-1, 24, -1, 24} {
		w := newSightWorld(t, seed+uint64(i), limit, i > 1)
		r := &sightReader{world: w, rng: w.rng}
		err := r.take(w.id)
		isHeld := false
		for step := 0; step < 3*sightSteps && err == nil; step++ {
			switch n := w.rng.IntN(40); {
			case n < 20:
				err = r.list()
			case n < 26:
				w.relist()
			case w.rng.IntN(3) == 0:
				isHeld, err = w.step(r, isHeld)
			case isHeld:
				w.syncs.Unlock()
				isHeld = false
			default:
				err = r.take(w.id)
			}
		}
		if isHeld {
			w.syncs.Unlock()
		}
		r.release()
		if err != nil {
			t.Fatalf("seed %d, chunks of %d, by records %t: %v", seed, limit, w.records, err)
		}
		if r.known < sightSteps/20 {
			t.Errorf("seed %d, chunks of %d, by records %t: only %d lists were recalled: the test tests little", seed, limit, w.records, r.known)
		}
	}
}
