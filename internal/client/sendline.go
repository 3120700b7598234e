package client

import "sync"

// A sendLine runs a bounded number of requests at a time.
type sendLine struct {
	slots   chan struct{}
	running sync.WaitGroup
	send    func(portion)
}

func newSendLine(parallel int, send func(portion)) *sendLine {
	return &sendLine{slots: make(chan struct{}, parallel), send: send}
}

// add waits for a slot, and for all others if the portion depends on them.
func (l *sendLine) add(b portion) {
	if b.later {
		l.running.Wait()
	}
	l.slots <- struct{}{}
	l.running.Go(func() {
		defer func() { <-l.slots }()
		l.send(b)
	})
}

func (l *sendLine) wait() { l.running.Wait() }
