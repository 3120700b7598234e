//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A wireWriter writes to the database of a wireLoop, by REST or by the protocol of the
// SDKs, without waiting for answers there.
type wireWriter struct {
	loop  *wireLoop
	id    int
	rng   *rand.Rand
	rest  *client     // nil for one by the protocol of the SDKs
	wire  *wireClient // which listens to what it writes
	count int         // of its writes
}

func (w *wireWriter) place() []string { return []string{"d", fmt.Sprintf("w%d", w.id)} }

// marks are where one write puts one number, which only grows.
func (w *wireWriter) marks() [][]string {
	var all [][]string
	for _, path := range []string{"seq", "pair/x", "far/y/z"} {
		all = append(all, append(w.place(), splitPath(path)...))
	}
	return all
}

// next returns a write, and the number that it puts at all marks; 0 for none.
func (w *wireWriter) next() (o write, number int) {
	w.count++
	list, key := []string{"d", "list"}, fmt.Sprintf("k%d", w.rng.IntN(10))
	switch w.rng.IntN(12) {
	case 0, 1, 2, 3:
		return write{method: "PATCH", path: w.place(), body: fmt.Sprintf(`{"seq":%d,"pair/x":%[1]d,"far/y/z":%[1]d}`, w.count)}, w.count
	case 4, 5:
		body := fmt.Sprintf(`{"n":%d,"m":%d,"by":%d}`, w.rng.IntN(10), w.rng.IntN(10), w.count)
		if w.rng.IntN(2) == 0 {
			body = fmt.Sprintf(`{"n":%d,".priority":%d,"deep":{"of":%d}}`, w.rng.IntN(10), w.rng.IntN(9), w.count)
		}
		return write{method: "PUT", path: append(list, key), body: body}, 0
	case 6:
		return write{method: "PATCH", path: list, body: fmt.Sprintf(`{"k%d/n":%d,"k%d":null,"k%d/deep/m":%d}`, w.rng.IntN(3), w.count, 3+w.rng.IntN(3), 6+w.rng.IntN(4), w.count)}, 0
	case 7:
		return write{method: "PUT", path: append(list, key), isPriority: true, body: strconv.Itoa(w.rng.IntN(9))}, 0
	case 8:
		return write{method: "PUT", path: []string{"d", "leaves", key}, body: pick(w.rng, "null", strconv.Itoa(w.rng.IntN(100)), strconv.Quote(key), "true", `{"o":1}`)}, 0
	}
	o = randomWrite(w.rng, append(w.place(), "free"), fmt.Sprintf("%d-%d", w.id, w.count))
	if o.method == "POST" { // the SDKs make keys themselves; here few of them, so that the data stays small
		o = write{method: "PUT", path: append(slices.Clone(o.path), strconv.Itoa(w.count%20)), body: o.body}
	}
	if len(o.body) > 1000 { // in one place, or what the tests do with the tree takes long
		o.path = append(w.place(), "free")
	}
	return o, 0
}

// spoken returns a write as the SDKs send it.
func (o write) spoken() (action, body string) {
	path := "/" + strings.Join(o.path, "/")
	if o.isPriority {
		path += "/.priority"
	}
	action = "p"
	if o.method == "PATCH" {
		action = "m"
	}
	data := o.body
	if o.method == "DELETE" {
		data = "null"
	}
	return action, fmt.Sprintf(`{"p":%q,"d":%s}`, path, data)
}

// work writes until stop is closed, and waits for what it has sent.
func (w *wireWriter) work(stop <-chan struct{}) {
	room := make(chan struct{}, 8) // for requests without an answer
	defer func() {
		for range cap(room) {
			room <- struct{}{}
		}
	}()
	for {
		select {
		case <-stop:
			return
		case room <- struct{}{}:
		}
		free := func() { <-room }
		switch {
		case w.rest != nil:
			w.send()
			free()
		case w.rng.IntN(8) == 0:
			w.raise(free)
		default:
			w.speak(free)
		}
	}
}

// send writes by REST.
func (w *wireWriter) send() {
	o, number := w.next()
	r := o.request(w.loop.database)
	a, _, err := w.rest.send(r)
	switch {
	case err != nil || a.status >= 500:
		<-time.After(5 * time.Millisecond) // the server is not there
	case a.status != http.StatusOK:
		w.loop.books.problem("%s = %d %s, want 200", r, a.status, a.body)
	default:
		w.loop.acknowledge(w.id, number)
	}
}

// speak writes by the protocol of the SDKs. When the answer is there, so is the push.
func (w *wireWriter) speak(done func()) {
	o, number := w.next()
	action, body := o.spoken()
	if !w.wire.ask(action, body, func(status string, d json.RawMessage) {
		defer done()
		switch {
		case status == "" || status == "unavailable":
			return
		case status != "ok":
			w.loop.books.problem("%s %s is answered %s %s, want ok", action, body, status, d)
			return
		}
		w.loop.acknowledge(w.id, number)
		if shown, _ := strconv.Atoi(w.wire.cache.tree.Plain(w.marks()[0])); shown < number {
			w.loop.books.problem("%s %s is answered while its writer is shown %d", action, body, shown)
		}
	}) {
		done()
	}
}

var wireTally = wireListen{path: []string{"d", "tally"}}

// raise makes a transaction as the SDKs do: it writes one more than what the client has, if the
// server has the same. A refusal comes behind the data that it is for.
func (w *wireWriter) raise(done func()) {
	var sent string
	var value int
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	made := func() string {
		value, _ = strconv.Atoi(w.wire.cache.tree.Plain(wireTally.path))
		sent, _ = w.wire.cache.hash(wireTally) // a number can be hashed
		return fmt.Sprintf(`{"p":"/d/tally","d":%d,"h":%q}`, value+1, sent)
	}
	if !w.wire.askWith("p", made, func(status string, d json.RawMessage) {
		defer done()
		now, _ := w.wire.cache.hash(wireTally)
		switch status {
		case "ok":
			w.loop.win(value + 1)
		case "datastale":
			w.loop.books.add(&w.loop.books.refused)
			if now == sent {
				w.loop.books.problem("a transaction on %d is stale before the client is told of anything else", value)
			}
		case "", "unavailable":
		default:
			w.loop.books.problem("a transaction is answered %s %s", status, d)
		}
	}) {
		done()
	}
}
