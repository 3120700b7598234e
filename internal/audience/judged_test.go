package audience_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// TestCheckDropsNextEvents: when the time of listens is over, not even those events are told
// that were taken from their watches already.
func TestCheckDropsNextEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const listens = 3
		f := enginetest.Open(t, store.Options{})
		until := time.Now().Add(time.Minute).UnixMilli()
		f.Rule(fmt.Sprintf(`{"rules": {".read": "now < %d"}}`, until))
		a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
		defer a.Close()
		next := func() (audience.Item, bool) { synctest.Wait(); return a.Next() }
		for i := range listens {
			a.Listen(int64(i), audience.ListenRequest{Path: enginetest.Path(t, fmt.Sprintf("/%d", i)), Known: &watch.Known{}})
		}
		for _, ok := next(); ok; _, ok = next() {
		}
		for i := range listens {
			f.Put(fmt.Sprintf("/%d", i), "1")
		}
		f.WaitForWatches()
		if item, _ := next(); item.Event == nil || item.Event.Kind != watch.Put { // and takes the next events of all
			t.Fatalf("the client is told %v, want a put", item.Event)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // fake time
		a.Check()
		cancelled := 0
		for item, ok := next(); ok; item, ok = next() {
			if item.Event == nil || item.Event.Kind != watch.Cancel {
				t.Fatalf("after its time the client is told %v", item.Event)
			}
			cancelled++
		}
		if cancelled != listens {
			t.Errorf("%d listens were cancelled, want %d", cancelled, listens)
		}
	})
}
