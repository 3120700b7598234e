package audience_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// TestAnswersThatAreNotTaken: an answer that waits for long becomes a failure, so that it holds
// no view. Those that came later do not, before it is their time.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		f.Rule(open)
		f.Put("/a", "1")
		a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
		defer a.Close()
		at := enginetest.Path(t, "/a")
		expect := func(id int64, good bool) {
			t.Helper()
			synctest.Wait()
			item, _ := a.Next()
			answer := item.Answer
			if answer == nil || answer.ID != id {
				t.Fatalf("the client is told %v, want answer %d", item, id)
			}
			if good != (answer.Err == nil) || good != (answer.Content != nil) {
				t.Fatalf("answer %d has content %v, error %v", id, answer.Content, answer.Err)
			}
			if good {
				if got := content(t, answer.Content); got != " 1" {
					t.Errorf("answer %d is %s", id, got)
				}
			} else if fault.KindOf(answer.Err) != fault.Unavailable {
				t.Errorf("answer %d fails with %v", id, answer.Err)
			}
		}
		wait := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time
		for id := range int64(4) {                      // a minute after each other
			a.Get(id, at, nil)
			wait(time.Minute)
		}
		expect(0, false)
		expect(1, false)
		expect(2, false) // it was just given up
		expect(3, true)
		a.Get(4, at, nil)
		wait(time.Minute)
		a.Reply(5, "note", nil)
		a.Get(6, at, nil)
		wait(time.Minute)
		expect(4, false)
		synctest.Wait()
		if item, _ := a.Next(); item.Answer == nil || item.Answer.Err != nil || item.Answer.Note != "note" {
			t.Errorf("an answer without data is %v", item.Answer)
		}
		expect(6, true)
	})
}
