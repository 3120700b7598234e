//go:build linux

package trust_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pressureVariable makes a process of the test binary an attacker.
const pressureVariable = "LIVETREE_TRUST_PRESSURE"

// A pressure is an attack that goes on while it is measured what ordinary clients
// notice of it.
type pressure struct {
	name string
	// begin does what the server is to cope with, and returns when that is on its way.
	// The function that it returns ends it.
	begin func(h *hostile) (end func())
	// keep is how long an attack lasts before it begins again.
	keep time.Duration
}

const attackerConns = 60

// pressures returns all attacks.
func pressures() []pressure {
	list := []pressure{
		{"nothing", func(*hostile) func() { return func() {} }, time.Second},
		{"unfinished bodies, HTTP/2", func(h *hostile) func() { return h.unfinished(6) }, 5 * time.Second},
		{"unread small answers, HTTP/2", func(h *hostile) func() { return h.unread(20, "/middle/0.json", "") }, 5 * time.Second},
		{"unread answers of 40 KB, HTTP/2", func(h *hostile) func() { return h.unread(20, "/middle.json", "") }, 5 * time.Second},
		{"unread large answers, HTTP/2", func(h *hostile) func() { return h.unread(20, "/large.json", "") }, 5 * time.Second},
		{"unread zstd answers, HTTP/2", func(h *hostile) func() { return h.unread(20, "/large.json", acceptZstd) }, 5 * time.Second},
		{"large answers", func(h *hostile) func() { return h.readOn(8, "/large.json", "") }, 5 * time.Second},
		{"zstd answers", func(h *hostile) func() { return h.readOn(8, "/large.json", "zstd") }, 5 * time.Second},
		{"bodies of 1 MB with 500,000 children", func(h *hostile) func() { return h.writeOn(8) }, 5 * time.Second},
	}
	for _, a := range append(append([]attack(nil), attacks...), attacksOverHTTP2...) {
		list = append(list, pressure{a.name, func(h *hostile) func() {
			s := a.besiege(h, attackerConns)
			s.opening.Wait()
			return s.end
		}, time.Second})
	}
	return list
}

// An attackerOrder is what an attacker is told by its environment.
type attackerOrder struct {
	Attack    int // the index of a pressure
	Dir, Addr string
	Nice      int
}

// TestAttacker is no test but the attacker, in a process of its own, so that what it
// takes of the processor is not counted as the server's, nor as the ordinary client's.
// It says a line when the attack has begun, and ends when its standard input does.
func TestAttacker(t *testing.T) {
	text, ok := os.LookupEnv(pressureVariable)
	if !ok {
		t.Skip("it is a part of TestPressure")
	}
	var order attackerOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, order.Nice); err != nil {
		t.Fatal(err)
	}
	trusted, err := authority(order.Dir)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	p, h := pressures()[order.Attack], &hostile{order.Addr, trusted, elsewhere}
	for begun := false; ; begun = true {
		end := p.begin(h)
		if !begun {
			fmt.Println("begun") //nolint:forbidigo // to the test that waits for it
		}
		select {
		case <-over:
			os.Exit(0) // the connections end with the process
		case <-time.After(p.keep):
			end()
		}
	}
}

// readOn has clients read an answer over and over.
func (h *hostile) readOn(clients int, target, encoding string) (end func()) {
	return h.sendOn(clients, func() request {
		return request{method: "GET", target: target, header: []string{"Accept-Encoding", encoding}}
	})
}

// writeOn has clients write a large body over and over.
func (h *hostile) writeOn(clients int) (end func()) {
	body := "[" + strings.Repeat("1,", 1<<19) + "1]"
	return h.sendOn(clients, func() request { return request{method: "PUT", target: "/theirs.json?print=silent", body: body} })
}

// sendOn has clients send the same request until it is ended.
func (h *hostile) sendOn(clients int, r func() request) (end func()) {
	over := make(chan struct{})
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			transport := h.transport(1)
			defer transport.CloseIdleConnections()
			c := &client{base: "https://" + h.addr, http: &http.Client{Transport: transport}}
			for {
				select {
				case <-over:
					return
				default:
					_, _, _ = c.send(r()) // it is the ordinary client who counts
				}
			}
		})
	}
	return func() {
		close(over)
		wait.Wait()
	}
}
