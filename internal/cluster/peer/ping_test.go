package peer

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneEndAsks: the end that has made a connection sends pings, the other answers those that come. Either closes it when nothing comes any more, and not
// before.
func TestOneEndAsks(t *testing.T) {
	for name, asks := range map[string]bool{"the end that has made it": true, "the other end": false} {
		synctest.Test(t, func(t *testing.T) {
			const asked, step = 20, 200 * time.Millisecond
			here, there := net.Pipe()
			a := &arrivals{Conn: there}
			c := newConn(a, a, Options{Ping: step, Now: time.Now}, quietPings)
			c.asks = asks
			began := time.Now()
			go func() {
				for i := range asked {
					_, _ = here.Write(frame{kind: ping, id: uint64(i) + 1}.encode())
					time.Sleep(step) //nolint:forbidigo // fake time
				}
			}()
			count := make(chan map[frameType]int)
			go func() {
				came := map[frameType]int{}
				for r := newFrameReader(here); ; {
					f, err := r.next()
					if err != nil {
						count <- came
						return
					}
					came[f.kind]++
				}
			}()
			err := c.run(func(frame) error { return nil })
			if took := time.Since(began); !errors.Is(err, errSilent) || took < (asked-1+quietPings)*step || took > (asked+2+quietPings)*step {
				t.Errorf("%s: after %d pings %v apart the connection ends with %v after %v", name, asked, step, err, took)
			}
			came := <-count
			if came[pong] != asked || (came[ping] > 0) != asks {
				t.Errorf("%s answers %d of %d pings, and sends %d", name, came[pong], asked, came[ping])
			}
		})
	}
}

// TestEndThatDoesNotAskIsHeard: where something else holds up the pings that come, as a large body does on a slow network, this end sends some by itself. The other would take it
// for silent.
func TestEndThatDoesNotAskIsHeard(t *testing.T) {
	for name, held := range map[string]bool{"pings that come": false, "pings that are held up": true} {
		synctest.Test(t, func(t *testing.T) {
			const ticks, step = 20, 200 * time.Millisecond
			here, there := net.Pipe()
			a := &arrivals{Conn: there}
			c := newConn(a, a, Options{Ping: step, Now: time.Now}, quietPings)
			go func() {
				for i := range 4 * ticks {
					f := frame{kind: part, id: 1, body: []byte("x")}
					if i%4 == 0 && !held {
						f = frame{kind: ping, id: uint64(i)}
					}
					_, _ = here.Write(f.encode())
					time.Sleep(step / 4) //nolint:forbidigo // fake time
				}
				c.close(net.ErrClosed)
			}()
			pings := make(chan int)
			go func() {
				count := 0
				for r := newFrameReader(here); ; {
					f, err := r.next()
					if err != nil {
						pings <- count
						return
					}
					if f.kind == ping {
						count++
					}
				}
			}()
			_ = c.run(func(frame) error { return nil })
			if sent := <-pings; held && sent < ticks/2 || !held && sent > 0 {
				t.Errorf("%s: in the time of %d, the end that answers them sends %d", name, ticks, sent)
			}
		})
	}
}
