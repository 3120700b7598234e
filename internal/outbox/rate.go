package outbox

import (
	"errors"
	"time"
)

const (
	// readRate is the least that a client must take of something long, in bytes a
	// second, over RateWindow.
	readRate   = 16 << 10
	RateWindow = 60 * time.Second
)

// ErrSlow is why a client is sent no more that takes too little.
var ErrSlow = errors.New("the client takes the answer too slowly")

// A Rate is how fast a client takes what is written to it. Only the time of the writes
// counts: reading the data, and waiting for a turn to do so, may take longer than
// RateWindow. The zero value is ready.
type Rate struct {
	waited time.Duration // for the client, in the current RateWindow
	bytes  int64         // that it took meanwhile
}

// Check returns ErrSlow if the client is too slow to be sent more.
func (r *Rate) Check() error {
	if r.waited <= RateWindow {
		return nil
	}
	if float64(r.bytes) < readRate*r.waited.Seconds() {
		return ErrSlow
	}
	*r = Rate{}
	return nil
}

// Count counts a write.
func (r *Rate) Count(bytes int, took time.Duration) {
	r.bytes += int64(bytes)
	r.waited += took
}
