package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/store"
)

// TestStepLeavesPreparedWritesStanding: each step changes the settings. A large write
// that is prepared while an index is built would never find the same ones at its
// turn.
func TestStepLeavesPreparedWritesStanding(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.rules(ageRules)
	f.ready()
	if !f.StepStands() {
		t.Error("a step of an index undoes what was prepared for a write")
	}
}

// TestIndexIsBuiltWhileParentsComeAndGo: writes touch the same few children, and
// their parents, so that a step is worked out on something else than it meets.
func TestIndexIsBuiltWhileParentsComeAndGo(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	for i := range 40 {
		f.put(fmt.Sprintf("users/g%02d", i), people(100))
	}
	writes := 150
	if raceEnabled {
		writes = 40
	}
	for round := range 3 {
		f.rules(ageRules)
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() { f.disturb(round*4+w, writes) })
		}
		writers.Wait()
		f.ready()
		f.check()
		f.rules(`{"rules": {".read": true, ".write": true}}`)
	}
}

// disturb makes writes that change children, empty parents, fill them again as one
// chunk, and replace all.
func (f *fixture) disturb(seed, count int) {
	for i := range count {
		n := seed*7919 + i*104_729
		group, person := fmt.Sprintf("users/g%02d", n%40), fmt.Sprintf("p%06d", n%100)
		switch i % 9 {
		case 0:
			f.put(group, `null`)
		case 1:
			f.put(group+"/"+person, `{"age":1}`)
		case 2:
			f.put(group, people(20+n%60))
		case 3:
			f.put(group+"/"+person+"/age", fmt.Sprint(n%50))
		case 4:
			f.patch(group, everyPerson(100, `null`))
		case 5:
			f.patch(group, everyPerson(30, `{"age":3,"name":"somebody with a long name that makes a chunk too large"}`))
		case 6:
			f.put(group+"/"+person, `null`)
		case 7:
			f.patch("users", fmt.Sprintf(`{"g%02d/%s/age":7,"g%02d/%s":null}`, n%40, person, (n+1)%40, person))
		default:
			f.put(fmt.Sprintf("%s/%s", group, person), people(5))
		}
	}
}

// everyPerson returns an object with one value for each of n people.
func everyPerson(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%06d":%s`, i, value)
	}
	return "{" + b.String()[1:] + "}"
}

// TestIndexWithoutWritersIsFinished: nobody has to write for it.
func TestIndexWithoutWritersIsFinished(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.put("users", people(3500)) // a part of a step is left
	f.rules(ageRules)
	if err := f.WaitForIndexes(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.check()
}
