package invite

import (
	"sync"
	"time"
)

const (
	// maxGuesses is how many guests of one host are refused in a guessTime before nothing of it is looked at.
	maxGuesses = 10
	guessTime  = time.Minute
	// maxHosts is how many hosts are counted. If there are more, none that is not counted gets in.
	maxHosts = 1024
)

// guesses count the guests of each host that were refused.
type guesses struct {
	mu     sync.Mutex
	ofHost map[string]*guessed
}

type guessed struct {
	since time.Time
	count int
}

// areMany says whether a host has guessed too often.
func (g *guesses) areMany(host string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.ofHost[host]; one != nil {
		return one.count >= maxGuesses && !one.isOver(now)
	}
	if len(g.ofHost) < maxHosts {
		return false
	}
	for host, one := range g.ofHost {
		if one.isOver(now) {
			delete(g.ofHost, host)
		}
	}
	return len(g.ofHost) >= maxHosts
}

// isOver says that what was counted is long ago, or that the clock was set back.
func (o *guessed) isOver(now time.Time) bool {
	since := now.Sub(o.since)
	return since < 0 || since >= guessTime
}

// add counts a guess.
func (g *guesses) add(host string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ofHost == nil {
		g.ofHost = map[string]*guessed{}
	}
	one := g.ofHost[host]
	if one == nil || one.isOver(now) {
		if one == nil && len(g.ofHost) >= maxHosts {
			return
		}
		one = &guessed{since: now}
		g.ofHost[host] = one
	}
	one.count++
}
