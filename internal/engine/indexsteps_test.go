package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// TestStepLeavesPreparedWritesStanding: each step changes the settings. A large write
// that is prepared while an index is built would never find the same ones at its
// turn.
func TestStepLeavesPreparedWritesStanding(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Rule(enginetest.AgeRules)
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
		f.Put(fmt.Sprintf("users/g%02d", i), people(100))
	}
	writes, rounds := 150, 3
	if enginetest.Race {
		writes, rounds = 20, 2
	}
	for round := range rounds {
		f.Rule(enginetest.AgeRules)
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() { f.disturb(round*4+w, writes) })
		}
		writers.Wait()
		f.ready()
		f.check()
		f.Rule(`{"rules": {".read": true, ".write": true}}`)
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
			f.Put(group, `null`)
		case 1:
			f.Put(group+"/"+person, `{"age":1}`)
		case 2:
			f.Put(group, people(20+n%60))
		case 3:
			f.Put(group+"/"+person+"/age", fmt.Sprint(n%50))
		case 4:
			f.Patch(group, everyPerson(100, `null`))
		case 5:
			f.Patch(group, everyPerson(30, `{"age":3,"name":"somebody with a long name that makes a chunk too large"}`))
		case 6:
			f.Put(group+"/"+person, `null`)
		case 7:
			f.Patch("users", fmt.Sprintf(`{"g%02d/%s/age":7,"g%02d/%s":null}`, n%40, person, (n+1)%40, person))
		default:
			f.Put(fmt.Sprintf("%s/%s", group, person), people(5))
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
	f.Put("users", people(3500)) // a part of a step is left
	f.Rule(enginetest.AgeRules)
	if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
		t.Fatal(err)
	}
	f.check()
}

// TestIndexIsBuiltWhenRulesComeAtTheEnd: the goroutine that works on indexes looks for
// work and ends. Rules that are committed in between find it there and start no other.
func TestIndexIsBuiltWhenRulesComeAtTheEnd(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Put("users", people(100))
	f.HoldIndexes()
	f.Rule(enginetest.AgeRules)
	if !f.FinishWhileRulesCome() {
		t.Error("an index that was asked for while the work on others ended is not built")
	}
	f.check()
}

// TestIndexIsBuiltForAClientThatLeft: the client that asked for an index need not be there
// when the rules are durable.
func TestIndexIsBuiltForAClientThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk := openBlocked(t)
		ctx, leave := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := f.SetRules(ctx, enginetest.AgeRules)
			answer <- err
		}()
		synctest.Wait() // the sync has begun
		leave()
		if err := <-answer; fault.KindOf(err) != fault.Unknown {
			t.Fatalf("SetRules for a client that left: %v, want unknown", err)
		}
		close(disk.release)
		synctest.Wait()
		s := f.View()
		defer s.Close()
		if got := indexStates(s); got["ready"] != 2 {
			t.Errorf("the indexes of a client that left are %v, want 2 ready", got)
		}
	})
}

// A tightDisk is one in memory that says how much of it is free.
type tightDisk struct{ *vfs.MemFS }

func (d tightDisk) free(bytes uint64) {
	d.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 10 << 30, AvailBytes: bytes, UsedBytes: 10<<30 - bytes})
}

// after lets time pass, in which the store looks at the disk and steps are tried
// again.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // fake time
	synctest.Wait()
}

// TestIndexIsNotBuiltOnANearlyFullDisk: steps that add rows wait until there is
// space, as writes do. Those that drop rows go on, and rules can be changed.
func TestIndexIsNotBuiltOnANearlyFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := tightDisk{vfs.NewMem()}
		disk.free(9 << 30)
		f := open(t, store.Options{FS: disk, BallastBytes: -1, ChunkBytes: 64, PriorityRows: 10})
		f.Put("users", people(3000))
		f.Put("ordered", people(2000))
		f.Rule(`{"rules": {"ordered": {".indexOn": "age"}}}`)
		f.ready()
		synctest.Wait() // the goroutine that built them has ended
		release := f.HoldIndexes()
		f.prioritise("ordered/p000007", 5)
		before := f.indexRows()

		disk.free(100 << 20)
		after(2 * time.Second)
		release()
		f.Rule(enginetest.AgeRules) // asks for an index, and drops one
		after(time.Minute)
		s := f.View()
		state := indexStates(s)
		s.Close()
		if state["building"] != 2 || state["dropping"] != 0 {
			t.Errorf("on a nearly full disk the indexes are %v, want two that wait to be built and none to be dropped", state)
		}
		if rows := f.indexRows(); rows != before-2000 {
			t.Errorf("%d index rows are left of %d, want %d less", rows, before, 2000)
		}

		disk.free(9 << 30)
		after(time.Minute)
		s = f.View()
		state = indexStates(s)
		s.Close()
		if state["ready"] != 2 {
			t.Errorf("when there is space again the indexes are %v, want two that are ready", state)
		}
		f.check()
		if got, err := f.run("ordered", highest()); err != nil || !strings.HasPrefix(got, `{"p000007":`) {
			t.Errorf("the query by priority gives %.80s, %v", got, err)
		}
	})
}

// TestWindowWhoseIndexIsBuilt: rules that leave the location as it was may still make
// another index of its own. Until that is built the window cannot be kept, but
// nobody has forbidden it.
func TestWindowWhoseIndexIsBuilt(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"$list": {".read": true, ".indexOn": "a"}}}`)
	if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
		t.Fatal(err)
	}
	var children []string
	for i := range 2000 {
		children = append(children, fmt.Sprintf(`"k%d":{"a":%d}`, i, i))
	}
	f.Do(`PUT /l {` + strings.Join(children, ",") + `}`)
	req := filtered(t, "/l", `orderBy="a"&limitToFirst=2`)
	req.Who = auth.Identity{}
	w := f.Watch(req)
	f.HoldIndexes()
	f.Rule(`{"rules": {"$list": {".read": true, ".indexOn": "a"}, "other": {}}}`)
	w.Expect()
	f.Do(`DELETE /l/k0`)
	w.Expect("end")
}
