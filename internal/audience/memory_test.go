package audience_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// TestHeldEventsCount: the next events of listens that a client does not take count in the memory
// that all share. Those that there is none for are given up, and what is there is told later.
func TestHeldEventsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const listens, bytes = 20, 40 << 10
		f := enginetest.Open(t, store.Options{})
		f.Rule(open)
		memory := budget.New(budget.Options{Limit: 1 << 20})
		a := audience.New(f.Database, audience.Options{
			Wake: func() {}, Memory: memory, Client: budget.Client{Network: netip.MustParseAddr("192.0.2.1"), Database: "d"},
		})
		defer a.Close()
		told := map[string]int{}
		next := func() bool {
			synctest.Wait()
			item, ok := a.Next()
			if ok && item.Event != nil {
				told[item.Listen.Cookie.(string)] = len(item.Event.Value) + len(content(t, item.Event.Content))
			}
			return ok
		}
		for i := range listens {
			at := fmt.Sprintf("/l/%d", i)
			a.Listen(int64(i), audience.ListenRequest{Path: enginetest.Path(t, at), Known: &watch.Known{}, Cookie: at})
		}
		for next() {
		}
		for i := range listens {
			f.Put(fmt.Sprintf("/l/%d", i), `"`+strings.Repeat("x", bytes)+`"`)
		}
		f.WaitForWatches()
		next() // takes the next events of all
		if taken := memory.Taken(); taken < 100<<10 || taken > 512<<10 {
			t.Errorf("%d events of %d bytes count for %d of %d", listens, bytes, taken, memory.Limit())
		}
		for next() {
		}
		if len(told) == listens || len(told) < 2 {
			t.Errorf("%d of %d listens were told something, want some but not all", len(told), listens)
		}
		for range 20 {
			time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
			for next() {
			}
		}
		for i := range listens {
			if got := told[fmt.Sprintf("/l/%d", i)]; got < bytes {
				t.Errorf("listen %d was told %d bytes, want %d", i, got, bytes)
			}
		}
		if taken := memory.Taken(); taken != 0 {
			t.Errorf("%d bytes are never given back", taken)
		}
	})
}

const most = "most of what is at /small"

// firstBesideLarge has a client that may take little memory listen to something small, while the next event of another listen
// of its is large. It returns what the client is told.
func firstBesideLarge(t *testing.T, f *enginetest.Fixture, known *watch.Known) (log []string) {
	t.Helper()
	f.Rule(open)
	f.Put("/small", `{"a":"`+most+`","b":2}`)
	a := audience.New(f.Database, audience.Options{
		Wake: func() {}, Memory: budget.New(budget.Options{Limit: 64 << 10}), Client: budget.Client{Database: "d"},
	})
	defer a.Close()
	told := func() (log []string) {
		synctest.Wait()
		for item, ok := a.Next(); ok; item, ok = a.Next() {
			text := describe(t, item)
			log = append(log, text[:min(len(text), 20)])
		}
		return log
	}
	a.Listen(1, audience.ListenRequest{Path: enginetest.Path(t, "/large"), Cookie: "/large"})
	told()
	a.Listen(2, audience.ListenRequest{Path: enginetest.Path(t, "/small"), Cookie: "/small", Known: known})
	f.Put("/large", `"`+strings.Repeat("x", 128<<10)+`"`) // it is looked at first
	f.WaitForWatches()
	log = told()
	f.Put("/other", `1`)
	f.WaitForWatches()
	return log
}

// TestFirstEventKeepsNoView: whatever becomes of the first event of a listen for which there is no memory, its view is given back.
func TestFirstEventKeepsNoView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		firstBesideLarge(t, f, nil)
		if views := f.Store.Stats().Views; views != 1 {
			t.Errorf("%d views are open when all was told, want the newest alone", views)
		}
	})
}

// TestFirstEventBeforeAnswer: the first event of a listen comes before its answer, also if there is no memory for events. A
// client takes an answer without data for the word that what it has is right.
func TestFirstEventBeforeAnswer(t *testing.T) {
	t.Parallel()
	same := sha1.Sum([]byte(`("a":(string:"` + most + `"))`))
	other, ok := sdkhash.NewCompound([]string{base64.StdEncoding.EncodeToString(same[:]), ""}, []string{"a"})
	if !ok {
		t.Fatal("the hashes are refused")
	}
	for want, known := range map[string]*watch.Known{"/small 0": nil, "/small 2": {Hash: "x", Compound: &other}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := firstBesideLarge(t, enginetest.Open(t, store.Options{}), known)
				first := slices.IndexFunc(log, func(line string) bool { return strings.HasPrefix(line, want) })
				if answer := slices.Index(log, "answer 2 <nil>"); first < 0 || answer < first {
					t.Errorf("the client was told %q, want %s before answer 2", log, want)
				}
			})
		})
	}
}
