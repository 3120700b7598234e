package engine_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/store"
)

// TestHeavyWriteStandsOverAWriterThatEnds: what was prepared is checked against the commits since
// then, also if the writer that made them has ended. Else a large write to a database that
// is written to now and then would never be made.
func TestHeavyWriteStandsOverAWriterThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, clock := openHooked(t, store.Options{})
		rounds := 0
		var elsewhere func()
		elsewhere = func() {
			defer clock.next(elsewhere)
			if !strings.Contains(string(debug.Stack()), ").prepare") {
				return // this is the writer, which gives the write its time
			}
			if rounds++; rounds > 1 {
				return
			}
			f.Put("b", fmt.Sprint(rounds))
			<-time.After(time.Second) // the writer ends
			if !f.Rests() {
				t.Error("the writer has not ended")
			}
		}
		clock.next(elsewhere)
		_, err := f.Write(t.Context(), request(t, "a", `{"n":`+increment+`,"pad":`+padding+`}`))
		clock.hook.Store(nil)
		if err != nil || rounds != 1 {
			t.Errorf("a large write beside small ones was prepared %d times: %v, want once", rounds, err)
		}
		<-time.After(time.Second)
		if f.Remembers() {
			t.Error("recent commits are remembered although nothing needs them")
		}
		f.Database.Close() // openHooked leaves that to the store
	})
}

// TestRecentIsBounded: long paths are not remembered in number.
func TestRecentIsBounded(t *testing.T) {
	f := open(t, store.Options{})
	most := 0
	long := strings.Repeat(strings.Repeat("k", 700)+"/", 20)
	for i := range 600 {
		switch i % 3 {
		case 0:
			f.Put(fmt.Sprintf("%s/%d", long, i), `1`)
		case 1:
			f.Patch("/", fmt.Sprintf(`{"%s/a%d":1,"%s/b%d":1}`, strings.Trim(long, "/"), i, strings.Trim(long, "/"), i))
		default:
			f.Put("a", fmt.Sprint(i))
		}
		changes, bytes := f.Recent()
		if most = max(most, changes); bytes > 64<<10 {
			t.Fatalf("after %d writes %d changes with %d bytes are remembered, want at most 64 KiB", i, changes, bytes)
		}
	}
	if most == 0 {
		t.Error("no change was ever remembered")
	}
}
