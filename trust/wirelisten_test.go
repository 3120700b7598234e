//go:build unix

package trust_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/livetree/livetree/internal/wiretest"
)

// A wireDiary is a client of the SDKs' protocol that writes numbers, one after the other
// and many at a time, and remembers which were acknowledged.
type wireDiary struct {
	database string
	sent     int
	kept     atomic.Int64 // the largest that was acknowledged before a power cut
}

var diaryPlace = []string{"diary"}

// keep listens to a database by the protocol of the SDKs until stop is closed, and writes. It
// enters what it is told, as listen does.
func (l *powerLoop) keep(stop <-chan struct{}, d *wireDiary, counter *tally) {
	trusted, err := authority(l.machine.dir)
	if err != nil {
		l.books.problem("%v", err)
		return
	}
	host, _, _ := strings.Cut(l.machine.addr, ":")
	link, err := wiretest.Connect(wiretest.Dialing{
		Address: l.machine.addr, Target: "/.ws?v=5&ns=" + d.database, TLS: &tls.Config{RootCAs: trusted, ServerName: host},
	})
	if err != nil {
		return // the end of the machine
	}
	defer link.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-stop:
			link.Close()
		case <-ended:
		}
	}()
	number := 0
	send := func(action, body string) {
		number++
		_ = link.Send(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, number, action, body)) // its end is seen by who reads
	}
	known := counter.known() // before the listen: what it is told first may be as old as that
	send("q", `{"p":"/","h":""}`)
	send("q", `{"p":"/","q":{"l":2,"vf":"r","i":".key"},"t":1,"h":""}`)
	written := map[int64]int{} // by the number of the request
	put := func() {
		d.sent++
		written[int64(number+1)] = d.sent
		send("p", fmt.Sprintf(`{"p":"/%s","d":%d}`, diaryPlace[0], d.sent))
	}
	for range 4 {
		put()
	}
	for {
		message, err := link.Next()
		if err != nil || !l.books.isOpen() {
			return
		}
		var m wireMessage
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			l.books.problem("%v", err)
			return
		}
		if m.Data.Number == nil {
			l.pushes.Add(1)
			l.books.saw(message)
			known = l.sawTally(m, known, counter)
			continue
		}
		if value := written[*m.Data.Number]; value > 0 && strings.Contains(message, `"s":"ok"`) {
			if l.books.isOpen() { // still: the answer came before the cut
				d.kept.Store(int64(value))
			}
			put()
		}
	}
}

// sawTally enters the tally if a push shows it, and returns what it is now.
func (l *powerLoop) sawTally(m wireMessage, known int, counter *tally) int {
	var p wirePush
	if json.Unmarshal(m.Data.Body, &p) != nil {
		return known
	}
	value, ok := tallyOf(fmt.Sprintf(`{"path":%q,"data":%s}`, "/"+p.Path, p.Data))
	if !ok || !l.books.isOpen() {
		return known
	}
	if value < known {
		l.books.problem("a push tells that the tally is %d, which was %d before", value, known)
	}
	counter.saw(value)
	return value
}

// verify looks whether what was acknowledged is there after a start.
func (d *wireDiary) verify(w *witness) error {
	a, _, err := w.client.send(request{method: "GET", target: target(d.database, diaryPlace, false)})
	if err != nil {
		return err
	}
	there, _ := strconv.Atoi(a.body) // none if it is not made
	if kept := int(d.kept.Load()); there < kept {
		w.books.problem("a client was told that it wrote %d, and there is %s", kept, a.body)
	}
	return nil
}
