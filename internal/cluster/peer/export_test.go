package peer

import "time"

// Listening is where a front listens, wherever it is reached.
func (f *Front) Listening() string { return f.listener.Addr().String() }

// RenewAt has a front look at its certificate at another time, and returns when the one that it shows then was issued.
func (f *Front) RenewAt(now time.Time) time.Time {
	f.renewAt(now)
	return f.identity.Load().at
}

// Impatient gives the first message of a connection another time.
func (o Options) Impatient(hello time.Duration) Options {
	o.hello = hello
	return o
}

// Held returns how much of a front is taken by calls and streams, in bytes and numbers.
func (f *Front) Held() (bodies, answers, calls, streams int64) {
	return f.bodies.taken.Load(), f.answers.taken.Load(), f.calls.taken.Load(), f.streams.taken.Load()
}

// Strangers returns how many connections have not shown yet that they come from a node.
func (f *Front) Strangers() int {
	f.doors.mu.Lock()
	defer f.doors.mu.Unlock()
	return f.doors.strangers.all
}

// MaxStrangers is how many connections of one host may be in their handshake.
const MaxStrangers = maxStrangersOfHost
