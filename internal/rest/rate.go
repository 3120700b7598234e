package rest

import (
	"errors"
	"time"
)

const (
	// readRate is the least that a client must take of an answer, in bytes a second, over
	// rateWindow.
	readRate   = 16 << 10
	rateWindow = 60 * time.Second
)

var errSlowReader = errors.New("the client takes the answer too slowly")

// A rate is how fast a client takes what is written to it. Only the time of the writes
// counts: reading the data, and waiting for a turn to do so, may take longer than
// rateWindow.
type rate struct {
	waited time.Duration // for the client, in the current rateWindow
	bytes  int64         // that it took meanwhile
}

// check returns errSlowReader if the client is too slow to be sent more.
func (r *rate) check() error {
	if r.waited <= rateWindow {
		return nil
	}
	if float64(r.bytes) < readRate*r.waited.Seconds() {
		return errSlowReader
	}
	*r = rate{}
	return nil
}

// count counts a write.
func (r *rate) count(bytes int, took time.Duration) {
	r.bytes += int64(bytes)
	r.waited += took
}
