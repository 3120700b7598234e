//go:build unix

package trust_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// A tally is a counter that many clients raise by transactions: read it with its
// ETag, write one more if it is the same still. Each number has one winner, and
// what was acknowledged or read never goes back, whatever happens to the server.
type tally struct {
	database string

	mu      sync.Mutex
	winners map[int]bool
	most    int // that was acknowledged or read
}

func newTally(database string) *tally {
	return &tally{database: database, winners: map[int]bool{}}
}

// step raises the counter by one, or finds that somebody else did.
func (c *tally) step(w *witness) bool {
	value, etag, goesOn := c.read(w)
	if !goesOn {
		return false
	}
	r := request{
		method: "PUT", target: target(c.database, []string{"tally"}, false),
		body: strconv.Itoa(value + 1), header: []string{"If-Match", etag},
	}
	a, sent, err := w.client.send(r)
	switch {
	case err == nil && a.status == http.StatusOK && w.books.acknowledge():
		if problem := c.won(value + 1); problem != "" {
			w.books.problem("%s: %s", r, problem)
		}
		return true
	case err == nil && a.status == http.StatusPreconditionFailed:
		w.books.add(&w.books.refused)
		return true
	case err == nil && a.status < 500 && a.status != http.StatusOK:
		w.books.problem("%s = %d %s, want 200 or 412", r, a.status, a.body)
		return true
	case err != nil && !sent.isSent:
		return false
	case err != nil:
		w.books.miss(sent)
	}
	w.books.add(&w.books.unknown)
	return false
}

// read returns the counter, which must not be behind what was known before.
func (c *tally) read(w *witness) (value int, etag string, goesOn bool) {
	c.mu.Lock()
	known := c.most
	c.mu.Unlock()
	r := request{method: "GET", target: target(c.database, []string{"tally"}, false), header: []string{"X-Firebase-ETag", "true"}}
	a, sent, err := w.client.send(r)
	if err != nil || a.status >= 500 {
		if err != nil {
			w.books.miss(sent)
		}
		return 0, "", false
	}
	if !w.books.isOpen() {
		return 0, "", false
	}
	if a.body != "null" {
		if value, err = strconv.Atoi(a.body); err != nil {
			w.books.problem("%s = %d %s, want a number", r, a.status, a.body)
			return 0, "", true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if value < known {
		w.books.problem("%s = %d, which was %d before", r, value, known)
	}
	c.most = max(c.most, value)
	return value, a.header.Get("ETag"), true
}

func (c *tally) won(value int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, value)
	if c.winners[value] {
		return fmt.Sprintf("two clients were told that they wrote %d", value)
	}
	c.winners[value] = true
	return ""
}

// known returns the greatest number that was acknowledged or shown.
func (c *tally) known() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// saw is told that somebody was shown a number.
func (c *tally) saw(value int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, value)
}
