package wire

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/store"
)

// smallFront returns a front whose clients share little memory.
func smallFront(writes int64) *Front {
	return New(Options{
		Logger: slog.New(slog.DiscardHandler), Now: time.Now, MaxBody: 16 << 20, Memory: budget.NewMemory(writes),
	})
}

func addressAt(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }

// spent expects all memory to be given back.
func spent(t testing.TB, f *Front) {
	t.Helper()
	m := f.opts.Memory
	if m.Writes.Taken() != 0 || m.Reads.Taken() != 0 || m.Kept.Taken() != 0 {
		t.Errorf("%d bytes for writes, %d for reads and %d that are kept are never given back",
			m.Writes.Taken(), m.Reads.Taken(), m.Kept.Taken())
	}
}

// TestWritesWaitForMemory: a write for which there is no memory is not read further, and
// goes through when there is some. Others write meanwhile. If there is never any, it is
// refused.
func TestWritesWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := enginetest.Open(t, store.Options{})
		db.Rule(`{"rules":{".read":true,".write":true}}`)
		f := smallFront(8 << 20) // an address gets 2 MiB, each byte counts twice
		long := strings.Repeat("x", 600<<10)
		greedy, other := beginAt(t, f, db, addressAt(1)), beginAt(t, f, db, addressAt(2))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 4 {
				greedy.send(fmt.Sprintf(`%d p {"p":"/a/%d","d":"%s"}`, i, i, long))
			}
		}()
		synctest.Wait()
		if taken, most := f.opts.Memory.Writes.Taken(), int64(3<<20); taken == 0 || taken > most {
			t.Errorf("writes that are not taken hold %d bytes, want at most %d", taken, most)
		}
		other.send(`1 p {"p":"/b","d":1}`)
		other.expect(`1 ok ""`)
		for i := range 4 { // it reads on when it is told
			greedy.expect(fmt.Sprintf(`%d ok ""`, i))
		}
		<-done
		spent(t, f)
		greedy.send(`5 p {"p":"/a/5","d":"` + long + `"}`)
		began := time.Now()
		greedy.send(`6 p {"p":"/a/6","d":"` + long + long + `"}`)
		if waited := time.Since(began); waited != writeWait {
			t.Errorf("a write waited for %v, want %v", waited, writeWait)
		}
		greedy.expect(`5 ok ""`, `6 unavailable "too much data is being written at the moment, try again"`)
		spent(t, f)
	})
}

// TestRequestsThatAreNotTaken: what waits to be taken by a client counts when it is much.
func TestRequestsThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := enginetest.Open(t, store.Options{})
		db.Rule(`{"rules":{".read":true}}`)
		f := smallFront(2 << 20) // 1 MiB for reads
		var asked [8]int
		var clients []*talk
		for i := range asked {
			k := beginAt(t, f, db, addressAt(1))
			clients = append(clients, k)
			go func() {
				for asked[i] < 2000 && k.session.receive(fmt.Appendf(nil, `{"t":"d","d":{"r":%d,"a":"g","b":{"p":"/a","q":{}}}}`, asked[i])) == nil {
					asked[i]++
				}
			}()
		}
		synctest.Wait()
		for i, n := range asked {
			if n < freeRequests || n >= 2000 {
				t.Errorf("client %d could ask %d times", i, n)
			}
		}
		if taken := f.opts.Memory.Reads.Taken(); taken == 0 || taken > 512<<10 {
			t.Errorf("%d bytes are taken for requests of one address", taken)
		}
		beginAt(t, f, db, addressAt(2)).quiet()
		for _, k := range clients {
			k.session.release()
		}
		synctest.Wait()
		spent(t, f)
	})
}

// TestLeftIsBounded: what clients leave to be written when they go is bounded for all of
// them together.
func TestLeftIsBounded(t *testing.T) {
	t.Parallel()
	db := enginetest.Open(t, store.Options{})
	db.Rule(`{"rules":{".read":true,".write":true}}`)
	f := smallFront(16 << 20) // 4 MiB are kept, of which an address gets 1 MiB
	long := strings.Repeat("x", 300<<10)
	var clients []*talk
	refused := 0
	for i := range 10 {
		k := beginAt(t, f, db, addressAt(1))
		clients = append(clients, k)
		k.send(fmt.Sprintf(`1 o {"p":"/a/%d","d":"%s"}`, i, long))
		if !strings.Contains(k.next(), `"s":"ok"`) {
			refused++
		}
	}
	if kept := f.opts.Memory.Kept.Taken(); kept > 1<<20 || kept < 900<<10 {
		t.Errorf("%d bytes are kept of one address, want about 1 MiB", kept)
	}
	if refused != 7 {
		t.Errorf("%d clients were refused, want 7", refused)
	}
	other := beginAt(t, f, db, addressAt(2))
	other.send(`1 o {"p":"/b","d":1}`)
	other.expect(`1 ok ""`)
	clients[0].send(`2 oc {"p":"/a/0","d":null}`)
	clients[0].expect(`2 ok ""`)
	clients[9].send(`2 o {"p":"/a/9","d":"` + long + `"}`) // there is room again
	clients[9].expect(`2 ok ""`)
	for _, k := range append(clients, other) {
		k.session.release()
	}
	spent(t, f)
}

// TestHeldAnswers: an answer is held while there is memory for it, and else printed again
// as it is sent, also one that is found by a scan.
func TestHeldAnswers(t *testing.T) {
	t.Parallel()
	db := enginetest.Open(t, store.Options{})
	db.Rule(`{"rules":{".read":true,".write":true}}`)
	var list strings.Builder
	for i := range 300 {
		fmt.Fprintf(&list, `,"k%03d":{"n":%d,"pad":"%s"}`, i, i%7, strings.Repeat("x", 1<<10))
	}
	db.Put("list", "{"+list.String()[1:]+"}")
	f := smallFront(16 << 20)
	k := begin(t, f, db)
	full := budget.New(budget.Options{Limit: 1})
	full.Claim(budget.Client{}, true).Grow(256 << 10)
	for i, request := range []string{
		`g {"p":"/list","q":{}}`,
		`q {"p":"/list","h":""}`,
		`q {"p":"/list","q":{"i":"n","l":200,"vf":"l"},"t":1,"h":""}`,
		`q {"p":"/list","q":{"i":"n","sp":1},"t":2,"h":""}`,
	} {
		var texts [2]string
		for free := range texts {
			k.send(fmt.Sprintf(`%d %s`, i, request))
			say := k.say()
			budget := f.opts.Memory.Reads
			if free == 0 {
				budget = full
			}
			claim := budget.Claim(k.session.budgetClient(), true)
			p, err := gather(&say, claim, maxContent, func() bool { claim.Release(); return true })
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			if (p.again == nil) != (free == 1) || len(p.text) > 0 != (free == 1) || (claim.Size() > 0) != (free == 1) {
				t.Errorf("%s: %d bytes are held and %d claimed; printed again: %t", request, len(p.text), claim.Size(), p.again != nil)
			}
			texts[free] = string(p.text)
			if p.again != nil {
				var text strings.Builder
				if err := errors.Join(p.again.PrintTo(&text), p.again.Close()); err != nil {
					t.Error(err)
				}
				texts[free] = string(say.head) + text.String() + string(say.tail)
			}
			claim.Release()
			if request[0] == 'q' {
				_ = k.next() // the answer
			}
		}
		if texts[0] != texts[1] || len(texts[0]) < 100<<10 {
			t.Errorf("%s: held, it has %d bytes, else %d", request, len(texts[1]), len(texts[0]))
		}
	}
}

// say waits for what the client is told next, and does not print it.
func (k *talk) say() saying {
	k.t.Helper()
	for {
		if say, ok := k.session.next(); ok {
			return say
		}
		select {
		case <-k.woken:
		case <-time.After(10 * time.Second):
			k.t.Fatal("the client is told nothing for 10 seconds")
		}
	}
}

// TestManyHostileClients: clients of many addresses do all that takes memory, at once and
// up to every bound, and take nothing of what they are told. The memory stays within its
// bounds, and an ordinary client is answered.
func TestManyHostileClients(t *testing.T) {
	t.Parallel()
	seed := mathrand.Uint64()
	t.Logf("seed %d", seed)
	db := enginetest.Open(t, store.Options{})
	db.Rule(`{"rules":{".read":true,".write":true}}`)
	db.Put("list", `{"a":{"n":1},"b":{"n":2},"long":"`+strings.Repeat("y", 100<<10)+`"}`)
	const limit = 2 << 20
	f := smallFront(limit)
	var hostile sync.WaitGroup
	var clients []*talk
	for i := range 18 {
		k := beginAt(t, f, db, addressAt(i%6))
		clients = append(clients, k)
		rng := mathrand.New(mathrand.NewPCG(seed, uint64(i)))
		hostile.Go(func() {
			for r := range 100 {
				if k.session.receive(hostileRequest(rng, i, r)) != nil {
					return
				}
			}
		})
	}
	ordinary := beginAt(t, f, db, addressAt(200))
	m := f.opts.Memory
	for i := range 50 {
		ordinary.send(fmt.Sprintf(`%d p {"p":"/o","d":%d}`, i, i), fmt.Sprintf(`%d g {"p":"/o","q":{}}`, 1000+i))
		ordinary.expect(fmt.Sprintf(`%d ok ""`, i), fmt.Sprintf(`%d ok %d`, 1000+i, i))
		// What is modest comes on top.
		if w, r, k := m.Writes.Taken(), m.Reads.Taken(), m.Kept.Taken(); w > limit+7*(256<<10) || r > limit/2+7*(256<<10) || k > limit/4+7*(256<<10) {
			t.Fatalf("writes take %d bytes, reads %d, what is kept %d, of %d", w, r, k, limit)
		}
	}
	for _, k := range clients {
		k.session.release()
	}
	hostile.Wait()
	ordinary.session.release()
	spent(t, f)
}

// hostileRequest returns a request that takes memory.
func hostileRequest(rng *mathrand.Rand, client, r int) []byte {
	long := strings.Repeat("x", rng.IntN(100<<10))
	bodies := []string{
		`"p","b":{"p":"/w/%[1]d","d":"%[2]s"}`,
		`"o","b":{"p":"/w/%[1]d/%[3]d","d":"%[2]s"}`,
		`"g","b":{"p":"/list","q":{}}`,
		`"q","b":{"p":"/list","h":"","q":{"i":"n","l":%[3]d,"vf":"l"},"t":%[3]d}`,
		`"q","b":{"p":"/list/%[3]d","h":""}`,
		`"m","b":{"p":"/list","d":{"x%[1]d":{"n":%[3]d},"y/z":"%[2]s"}}`,
	}
	body := bodies[rng.IntN(len(bodies))]
	text := fmt.Sprintf(body+"%[4]s", client, long, r+1, "")
	return fmt.Appendf(nil, `{"t":"d","d":{"r":%d,"a":%s}}`, r, text)
}

// unreadable is a content that cannot be read.
type unreadable struct{}

func (unreadable) PrintTo(io.Writer) error { return fault.New(fault.Corrupt, "data corruption") }
func (unreadable) Close() error            { return nil }

// TestUnreadableAnswers: data that cannot be read is the failure of who asks for it, and
// does not end the connection.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	db := enginetest.Open(t, store.Options{})
	db.Rule(`{"rules":{".read":true}}`)
	f := newFront(false)
	k := begin(t, f, db)
	s := f.newSocket(k.session)
	k.send(`1 q {"p":"/a"}`)
	say := k.say()
	_ = say.content.Close()
	say.content = unreadable{}
	batch := s.client.NewBatch()
	defer batch.Free()
	if reason := s.print(&batch, &say); reason != outbox.GoesOn {
		t.Errorf("a listen of what cannot be read ends the connection: %v", reason)
	}
	k.expect(`1 failure "data corruption"`)
	say = saying{content: unreadable{}, id: 2}
	if reason := s.print(&batch, &say); reason != outbox.GoesOn || !strings.Contains(string(batch.Bytes), `"s":"failure"`) {
		t.Errorf("a read of what cannot be read is answered %q, %v", batch.Bytes, reason)
	}
}
