package audience_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestOrder has a client with overlapping listens write while others do, too. Whatever
// the client is told, and whenever: the events of a commit come before its answer, an
// update is never shown by half, the order of commits is kept, and in the end every cache
// is what is there.
func TestOrder(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *enginetest.Fixture{
		"usual": func(t testing.TB) *enginetest.Fixture { return enginetest.Open(t, store.Options{}) },
		"tiny":  openTiny,
	} {
		t.Run(name, func(t *testing.T) { testOrder(t, open(t), rand.Uint64()) })
	}
}

func testOrder(t *testing.T, f *enginetest.Fixture, seed uint64) {
	t.Logf("seed %d", seed)
	f.Rule(`{"rules":{".read":true,".write":true,"list":{".indexOn":["n"]}}}`)
	if err := enginetest.WaitForIndexes(t.Context(), f.Database); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, f.Database, audience.Limits{})
	watched := []struct{ at, parameters string }{
		{"/", ""}, {"/own", ""}, {"/pair", ""}, {"/list", `orderBy="$key"&limitToLast=3`}, {"/list", `orderBy="n"&limitToFirst=2`},
		{"/mine", `orderBy="$key"&limitToLast=2`},
	}
	for i, w := range watched {
		if answer := c.listen(int64(i), w.at, w.parameters); answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
	written := map[int64]int{}
	c.mu.Lock()
	c.looks = append(c.looks, func(item audience.Item) {
		root := c.cached("/")
		if a, b := root.At(enginetest.Path(t, "/pair/a")), root.At(enginetest.Path(t, "/pair/b/c")); !tree.Equal(a, b) {
			t.Errorf("half an update is shown: %v and %v", a.Leaf(), b.Leaf())
		}
		if item.Answer == nil || item.Answer.Err != nil || item.Answer.ID < 1000 {
			return
		}
		key := strconv.Itoa(int(item.Answer.ID))
		if root.Child("own").Child(key).IsNull() || c.cached("/own").Child(key).IsNull() {
			t.Errorf("the answer of %s came before its event", key)
		}
		newest := ""
		for mine := range c.cached(`/mine?orderBy="$key"&limitToLast=2`).Children() {
			newest = mine
		}
		if newest < "k"+key {
			t.Errorf("the answer of %s came when the window was at %s", key, newest)
		}
	})
	c.mu.Unlock()
	var others sync.WaitGroup
	for i := range 3 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		others.Go(func() {
			for n := range 150 {
				f.Do(otherWrite(random, n))
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 99))
	for n := range 300 {
		id := int64(1000 + n)
		written[id] = n
		value := strconv.Itoa(n)
		if random.IntN(10) == 0 {
			value = `"` + strings.Repeat("x", random.IntN(200)) + `"`
		}
		c.write(id, fmt.Sprintf(`PATCH / {"own/%d":%s,"mine/k%d":0,"list/k%03d/n":%d}`, id, value, id, random.IntN(40), random.IntN(20)))
	}
	others.Wait()
	for id := range written {
		if answer := c.await(id); answer.Err != nil && fault.KindOf(answer.Err) != fault.Unavailable {
			t.Errorf("%d: %v", id, answer.Err)
		}
	}
	f.WaitForWatches()
	for _, w := range watched {
		req := c.listenRequest(w.at, w.parameters)
		want := expected(t, f, w.at, req.Query)
		c.eventually(fmt.Sprint("what is there at ", w.at, " ", w.parameters), func() bool { return tree.Equal(c.cached(req.Cookie.(string)), want) })
	}
}

func otherWrite(random *rand.Rand, n int) string {
	switch random.IntN(6) {
	case 0:
		return fmt.Sprintf(`PATCH / {"pair/a":%d,"pair/b/c":%d}`, n, n)
	case 1:
		return fmt.Sprintf(`PUT /list/k%03d {"n":%d}`, random.IntN(40), random.IntN(20))
	case 2:
		return fmt.Sprintf(`DELETE /list/k%03d`, random.IntN(40))
	case 3:
		return fmt.Sprintf(`PUT /deep/%d/%d {".value":%d,".priority":%d}`, random.IntN(3), random.IntN(3), n, random.IntN(3))
	case 4:
		return fmt.Sprintf(`PATCH /list {"k%03d/n":%d,"k%03d":null,"k%03d/x/y":%d}`, random.IntN(10), n, 10+random.IntN(10), 20+random.IntN(10), n)
	}
	return fmt.Sprintf(`PUT /list/k%03d/.priority %d`, random.IntN(40), random.IntN(3))
}

// TestListenInOrder: the first event of a listen has its place in the order, too: a client
// that listens above another listen is not taken back in time. The client itself looks
// at positions.
func TestListenInOrder(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{".read":true,".write":true}}`)
	c := newClient(t, f.Database, audience.Limits{})
	c.listen(1, "/a/b", "")
	var writing sync.WaitGroup
	var left atomic.Int64
	left.Store(400)
	for range 2 {
		writing.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				f.Do(fmt.Sprintf(`PUT /a/b/n %d`, n))
			}
		})
	}
	for id := int64(2); left.Load() > 0 && !t.Failed(); id += 2 {
		c.listen(id, "/a", "")
		c.Unlisten(id+1, enginetest.Path(t, "/a"), nil)
	}
	writing.Wait()
}

// TestChain: writes take effect in the order in which they were sent, also where some
// must be prepared, and answers come in that order.
func TestChain(t *testing.T) {
	f := openTiny(t)
	f.Rule(`{"rules":{".read":true,".write":true}}`)
	c := newClient(t, f.Database, audience.Limits{Unanswered: 32, Bytes: 1 << 20, Listens: 10, ListenBytes: 1 << 20})
	var order []int64
	last := 0
	c.mu.Lock()
	c.looks = append(c.looks, func(item audience.Item) {
		if item.Answer != nil {
			order = append(order, item.Answer.ID)
			return
		}
		if now := int(c.cached("/").Child("n").Leaf().Int()); now < last {
			t.Errorf("%d came behind %d", now, last)
		} else {
			last = now
		}
	})
	c.mu.Unlock()
	c.listen(1, "/", "")
	const writes = 300
	for n := range int64(writes) {
		padding := ""
		if n%7 == 0 { // heavy
			padding = `,"pad":"` + strings.Repeat("x", 100) + `"`
		}
		c.write(10+n, fmt.Sprintf(`PATCH / {"n":%d%s}`, n, padding))
	}
	c.Get(10+writes, tree.Path{}, nil)
	c.await(10 + writes)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range order[1:] {
		if id != int64(10+i) {
			t.Fatalf("the answers came as %v", order)
		}
		if err := c.answers[id].Err; err != nil {
			t.Errorf("write %d: %v", id, err)
		}
	}
	if last != writes-1 {
		t.Errorf("the last value is %d", last)
	}
}

// TestChainBreaks: a write that turns out to be heavy at its turn is made before those
// behind it. Each of them would make its condition false.
func TestChainBreaks(t *testing.T) {
	f := openTiny(t)
	c := newClient(t, f.Database, audience.Limits{})
	c.Identify(auth.Identity{Admin: true})
	large := `{"pad":"` + strings.Repeat("x", 100) + `"}`
	n, err := tree.Decode(strings.NewReader(large), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hash := sdkhash.Of(n)
	const rounds = 50
	for i := range int64(rounds) {
		c.write(3*i, `PUT /big `+large)
		req, err := enginetest.ParseRequest(`PUT /big 1`)
		if err != nil {
			t.Fatal(err)
		}
		req.IfHash = &hash
		if i%2 == 0 {
			c.await(3 * i) // so that it is submitted
		}
		c.Write(3*i+1, req)
		c.write(3*i+2, `PUT /big 2`)
	}
	for id := range int64(3 * rounds) {
		if answer := c.await(id); answer.Err != nil {
			t.Errorf("write %d: %v", id, answer.Err)
		}
	}
}

// TestCloseWaits: what was taken is made before a client is gone, so that nothing of it
// comes behind what is made then.
func TestCloseWaits(t *testing.T) {
	f := openTiny(t)
	f.Rule(`{"rules":{".read":true,".write":true}}`)
	a := audience.New(f.Database, audience.Options{Wake: func() {}})
	for n := range int64(20) {
		req, err := enginetest.ParseRequest(fmt.Sprintf(`PUT /n {"n":%d,"pad":"%s"}`, n, strings.Repeat("x", int(n%2)*100)))
		if err != nil {
			t.Fatal(err)
		}
		a.Write(n, req)
	}
	a.Close()
	if got := f.Export("/n/n"); got != "19" {
		t.Errorf("when a client is gone, /n/n is %s, want 19", got)
	}
}

// TestCrowd: the listens of all clients are bounded together, and forgotten with them.
func TestCrowd(t *testing.T) {
	f := openTiny(t)
	f.Rule(`{"rules":{".read":true}}`)
	crowd := &audience.Crowd{Max: 2}
	listen := func(a *audience.Audience, id int64, at string) error {
		a.Listen(id, audience.ListenRequest{Path: enginetest.Path(t, at)})
		for {
			item, ok := a.Next()
			switch {
			case ok && item.Answer != nil:
				return item.Answer.Err
			case ok && item.Event.Content != nil:
				_ = item.Event.Content.Close()
			}
		}
	}
	open := func() *audience.Audience {
		a := audience.New(f.Database, audience.Options{Wake: func() {}, Crowd: crowd})
		t.Cleanup(a.Close)
		return a
	}
	a, b := open(), open()
	if err := errors.Join(listen(a, 1, "/a"), listen(a, 2, "/b")); err != nil {
		t.Fatal(err)
	}
	if err := listen(b, 1, "/a"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a third listen: %v", err)
	}
	a.Close()
	if err := listen(b, 2, "/a"); err != nil {
		t.Errorf("when the others are gone: %v", err)
	}
}
