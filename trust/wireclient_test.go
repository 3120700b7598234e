//go:build unix

package trust_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// A wireClient is a client of the SDKs' protocol that keeps caches. When its connection
// ends it comes back, and says what it has by hashes.
type wireClient struct {
	name    string
	dial    func() (*wiretest.Link, error)
	listens []wireListen
	// isBare sends no hashes, as the C++ SDK.
	isBare bool
	// isPhone sends hashes of ranges beside the hash, as the SDKs for phones.
	isPhone bool
	// isApart says that no two of its listens overlap, so that each push must change
	// something.
	isApart bool
	// tamper, if set, is what happens to messages on their way: planted bugs.
	tamper func(message string) []string
	// claim, if set, changes what it says that it has.
	claim   func(hash string) string
	problem func(format string, args ...any)
	// look is called after each message, with the caches that it has led to.
	look func(c *wireCache)

	mu      sync.Mutex
	changed *sync.Cond
	link    *wiretest.Link // nil while there is none
	cache   *wireCache
	waiting map[int64]func(status string, d json.RawMessage) // "" if there will be no answer
	last    int64
	opening int // listens without their reply
	begun   int // connections
	pushes  int // with data
	faults  int // connections that ended as they must not
	isOver  bool
}

// newWireClient returns a client of a process, which is somewhere else after each start.
func newWireClient(name string, dial func() (*wiretest.Link, error), listens ...wireListen) *wireClient {
	c := &wireClient{name: name, dial: dial, listens: listens, cache: newWireCache(listens), look: func(*wireCache) {}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// dialWire returns how a client of a database connects.
func dialWire(p *process, database string) func() (*wiretest.Link, error) {
	return func() (*wiretest.Link, error) {
		trusted, err := p.trusted()
		if err != nil {
			return nil, err
		}
		host, _, _ := strings.Cut(p.address(), ":")
		return wiretest.Connect(wiretest.Dialing{
			Address: p.address(), Target: "/.ws?v=5&ns=" + database,
			TLS: &tls.Config{RootCAs: trusted, ServerName: host},
		})
	}
}

// run connects again and again until the client is closed.
func (c *wireClient) run() {
	for {
		link, err := c.dial()
		if err != nil {
			var violation *wiretest.Violation
			if errors.As(err, &violation) {
				c.problem("%s: %v", c.name, err)
			}
			<-time.After(5 * time.Millisecond) // the server is not there
		}
		c.mu.Lock()
		isOver := c.isOver
		c.mu.Unlock()
		switch {
		case isOver && link != nil:
			link.Close()
			return
		case isOver:
			return
		case link != nil:
			c.serve(link)
		}
	}
}

// close ends the client.
func (c *wireClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOver = true
	if c.link != nil {
		c.link.Close()
	}
}

// serve takes what a connection brings, until it ends.
func (c *wireClient) serve(link *wiretest.Link) {
	defer c.lose(link)
	for {
		message, err := link.Next()
		var violation *wiretest.Violation
		var closed *wiretest.Closed
		switch {
		case errors.As(err, &violation), errors.As(err, &closed) && closed.Code != 1001, errors.Is(err, os.ErrDeadlineExceeded) && c.isWaiting():
			c.complain(err)
			return
		case err != nil:
			return
		}
		messages := []string{message}
		if c.tamper != nil {
			messages = c.tamper(message)
		}
		c.mu.Lock()
		for _, message := range messages {
			if err := c.take(link, message); err != nil {
				c.problem("%s: %.300s: %v", c.name, message, err)
			}
		}
		c.mu.Unlock()
	}
}

// complain tells of a connection that ended as it must not. After several, the client stays
// away.
func (c *wireClient) complain(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem("%s: the connection ends while %d requests have no answer: %v", c.name, len(c.waiting), err)
	c.faults++
	c.isOver = c.isOver || c.faults > 5
}

// isWaiting reports whether a request has no answer.
func (c *wireClient) isWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// lose tells all who wait that nothing comes any more.
func (c *wireClient) lose(link *wiretest.Link) {
	link.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
	for _, answered := range c.waiting {
		answered("", nil)
	}
	c.waiting = nil
	c.changed.Broadcast()
}

// A wireMessage is what a server says.
type wireMessage struct {
	Kind string `json:"t"`
	Data struct {
		Control string          `json:"t"`
		Number  *int64          `json:"r"`
		Action  string          `json:"a"`
		Body    json.RawMessage `json:"b"`
	} `json:"d"`
}

// take does what a message says.
func (c *wireClient) take(link *wiretest.Link, message string) error {
	var m wireMessage
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return err
	}
	switch {
	case m.Kind == "c" && m.Data.Control == "h":
		return c.begin(link)
	case m.Kind == "c" && m.Data.Control == "s":
		return errors.New("the client is told never to come back")
	case m.Kind == "c":
		return nil
	case m.Data.Number != nil:
		var b struct {
			Status string          `json:"s"`
			Data   json.RawMessage `json:"d"`
		}
		if err := json.Unmarshal(m.Data.Body, &b); err != nil {
			return err
		}
		if answered := c.waiting[*m.Data.Number]; answered != nil {
			delete(c.waiting, *m.Data.Number)
			answered(b.Status, b.Data)
		}
		c.changed.Broadcast()
		return nil
	}
	return c.push(m)
}

// push takes a push.
func (c *wireClient) push(m wireMessage) error {
	if m.Data.Action == "c" || m.Data.Action == "ac" {
		return errors.New("a listen is over that nobody has ended")
	}
	var p wirePush
	if err := json.Unmarshal(m.Data.Body, &p); err != nil {
		return err
	}
	c.pushes++
	changed, err := c.cache.apply(m.Data.Action, p)
	if err == nil && !changed && c.isApart {
		err = errors.New("the push changes nothing")
	}
	c.look(c.cache)
	return err
}

// begin says hello back: it listens to everything, with hashes of what it has.
func (c *wireClient) begin(link *wiretest.Link) error {
	c.link = link
	c.begun++
	c.opening = 0
	c.waiting = map[int64]func(string, json.RawMessage){}
	for _, l := range c.listens {
		if err := c.listen(l); err != nil {
			return err
		}
	}
	c.changed.Broadcast()
	return nil
}

// listen sends a listen.
func (c *wireClient) listen(l wireListen) error {
	hash, err := c.cache.hash(l)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"p":%q`, "/"+strings.Join(l.path, "/"))
	if !l.isPlain() {
		body += fmt.Sprintf(`,"q":%s,"t":%d`, l.query, l.tag)
	}
	if c.claim != nil {
		hash = c.claim(hash)
	}
	if !c.isBare {
		body += fmt.Sprintf(`,"h":%q`, hash)
	}
	if c.isPhone {
		ranges, err := c.cache.ranges(l)
		if err != nil {
			return err
		}
		body += `,"ch":` + ranges
	}
	c.opening++
	c.send("q", body+"}", func(status string, _ json.RawMessage) {
		c.opening--
		if status != "ok" && status != "" && status != "unavailable" {
			c.problem("%s: to listen at %s is answered %s", c.name, l, status)
		}
	})
	return nil
}

// send sends a request, with mu held. What becomes of it is told to answered, with mu held.
func (c *wireClient) send(action, body string, answered func(status string, d json.RawMessage)) {
	c.last++
	c.waiting[c.last] = answered
	// An error is seen by who reads, and all who wait are told.
	_ = c.link.Send(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, c.last, action, body))
}

// ask sends a request when there is a connection. It is false when the client is closed.
func (c *wireClient) ask(action, body string, answered func(status string, d json.RawMessage)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.askWith(action, func() string { return body }, answered)
}

// askWith is ask with mu held, and makes the body when there is a connection.
func (c *wireClient) askWith(action string, body func() string, answered func(status string, d json.RawMessage)) bool {
	for c.link == nil && !c.isOver {
		c.changed.Wait()
	}
	if c.isOver {
		return false
	}
	c.send(action, body(), answered)
	return true
}

// wait sends a request and returns what is answered. Where the connection ends, it asks
// again. Judge is called at the place of the answer in the order of all messages.
func (c *wireClient) wait(action, body string, judge func(status string, d json.RawMessage)) (status string) {
	for {
		done := make(chan string, 1)
		if !c.ask(action, body, func(status string, d json.RawMessage) {
			if status != "" && status != "unavailable" {
				judge(status, d)
			}
			done <- status
		}) {
			return ""
		}
		select {
		case status := <-done:
			if status != "" && status != "unavailable" {
				return status
			}
		case <-time.After(patience):
			c.problem("%s: %s %s has no answer in %v", c.name, action, body, patience)
			return ""
		}
	}
}

// move has a client go from listen to listen, as an SDK does: the new one is there before the
// old one goes.
func (c *wireClient) move(stop <-chan struct{}, rng *rand.Rand, places []wireListen) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(10)) * time.Millisecond):
		}
		c.mu.Lock()
		at := pick(rng, places...)
		i := slices.IndexFunc(c.listens, func(l wireListen) bool { return slices.Equal(l.path, at.path) })
		switch {
		case c.link == nil:
		case i < 0:
			c.listens = append(slices.Clone(c.listens), at)
			if err := c.listen(at); err != nil {
				c.problem("%s: %v", c.name, err)
			}
		case len(c.listens) > 1 && c.opening == 0:
			c.unlisten(i)
		}
		c.mu.Unlock()
	}
}

// unlisten ends a listen. What it showed is forgotten when the reply is there.
func (c *wireClient) unlisten(i int) {
	at := c.listens[i]
	c.opening++ // no other meanwhile
	c.send("n", fmt.Sprintf(`{"p":%q}`, "/"+strings.Join(at.path, "/")), func(status string, _ json.RawMessage) {
		c.opening--
		if status == "ok" {
			c.listens = slices.DeleteFunc(slices.Clone(c.listens), func(l wireListen) bool { return slices.Equal(l.path, at.path) })
			c.cache.forget(c.listens)
			c.look(c.cache)
		}
	})
}
