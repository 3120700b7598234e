package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// This file is the websockets of a crowd: its process takes, beside the commands for
// streams,
//
//	listen ADDR PATH N CAFILE        opens websockets that listen to a path
//	further K                        has each listen to K more, of its own
//	lag ADDR PATH CAFILE reads|not   opens one more that listens, and reads or does not;
//	                                 the last one ends
//	return ADDR PATH N CAFILE HASH   opens websockets whose clients have what is at the
//	                                 path, and closes them when all were answered; the
//	                                 answer has the times that it took
//
// A message that is no control message counts as an event: an answer as well, which
// comes in place of the first event of a stream.

func (c *crowd) obeySockets(ctx context.Context, command []string) (took []time.Duration, err error) {
	if len(command) == 2 && command[0] == "further" {
		return nil, c.listenFurther(command[1])
	}
	if len(command) < 5 {
		return nil, fmt.Errorf("what is %q?", command)
	}
	if command[0] == "lag" {
		return nil, c.lag(ctx, command[1], command[2], command[3], command[4] == "reads")
	}
	if _, err := fmt.Sscan(command[3], &c.streams); err != nil {
		return nil, err
	}
	config, err := trusting(command[4])
	if err != nil {
		return nil, err
	}
	switch {
	case command[0] == "listen":
		if err := c.listen(ctx, command[1], command[2], config); err != nil {
			return nil, err
		}
		return nil, c.await()
	case command[0] == "return" && len(command) == 6:
		return c.comeBack(ctx, command[1], command[2], command[5], config)
	}
	return nil, fmt.Errorf("what is %q?", command)
}

// listen opens the websockets.
func (c *crowd) listen(ctx context.Context, addr, path string, config *tls.Config) error {
	var mu sync.Mutex
	return c.each(func() error {
		s, err := openSocket(ctx, addr, config)
		if err != nil {
			return err
		}
		if err := s.ask("q", `{"p":"%s","h":""}`, path); err != nil {
			return err
		}
		mu.Lock()
		c.sockets = append(c.sockets, s)
		mu.Unlock()
		go c.countMessages(s)
		return nil
	})
}

// each does something for each client, for a few at a time.
func (c *crowd) each(do func() error) error {
	const atOnce = 16
	errs := make(chan error, atOnce)
	left := make(chan struct{}, c.streams)
	for range c.streams {
		left <- struct{}{}
	}
	close(left)
	for range atOnce {
		go func() {
			var err error
			for range left {
				if err == nil {
					err = do()
				}
			}
			errs <- err
		}()
	}
	var err error
	for range atOnce {
		err = errors.Join(err, <-errs)
	}
	return err
}

// countMessages counts the messages of a websocket.
func (c *crowd) countMessages(s *socket) {
	for {
		if _, err := s.read(); err != nil {
			c.fail(fmt.Errorf("a websocket ended: %w", err))
			return
		}
		c.add(1)
	}
}

// listenFurther has each websocket listen to more places, that no other one listens to.
func (c *crowd) listenFurther(count string) error {
	var more int
	if _, err := fmt.Sscan(count, &more); err != nil {
		return err
	}
	for round := range more {
		for i, s := range c.sockets {
			if err := s.ask("q", `{"p":"/further/client%d/place%d","h":""}`, i, round); err != nil {
				return err
			}
		}
		if err := c.await(); err != nil {
			return err
		}
	}
	return nil
}

// lag opens a websocket that takes what it is sent, or nothing.
func (c *crowd) lag(ctx context.Context, addr, path, caFile string, reads bool) error {
	if c.lagging != nil {
		_ = c.lagging.Close()
	}
	config, err := trusting(caFile)
	if err != nil {
		return err
	}
	s, err := openSocket(ctx, addr, config)
	if err != nil {
		return err
	}
	c.lagging = s
	if err := s.ask("q", `{"p":"%s"}`, path); err != nil {
		return err
	}
	if reads {
		go func() {
			for err := error(nil); err == nil; _, err = s.read() {
			}
		}()
		return nil
	}
	if inner, ok := s.Conn.(*tls.Conn); ok {
		if tcp, ok := inner.NetConn().(*net.TCPConn); ok {
			const little = 4 << 10
			err = tcp.SetReadBuffer(little)
		}
	}
	_, replyErr := s.reply()
	return errors.Join(err, replyErr)
}

// comeBack has clients come that know what is there. Each is to be answered, and told
// nothing.
func (c *crowd) comeBack(ctx context.Context, addr, path, hash string, config *tls.Config) ([]time.Duration, error) {
	var mu sync.Mutex
	var sockets []*socket
	defer func() {
		for _, s := range sockets {
			_ = s.Close()
		}
	}()
	times := make([]time.Duration, 0, c.streams)
	err := c.each(func() error {
		began := now()
		s, err := openSocket(ctx, addr, config)
		if err != nil {
			return err
		}
		mu.Lock()
		sockets = append(sockets, s)
		mu.Unlock()
		if err := s.ask("q", `{"p":"%s","h":"%s"}`, path, hash); err != nil {
			return err
		}
		events, err := s.reply()
		if err == nil && events > 0 {
			err = errors.New("a client that knows what is there was sent it again")
		}
		took := now().Sub(began)
		mu.Lock()
		defer mu.Unlock()
		times = append(times, took)
		return err
	})
	slices.Sort(times)
	return times, err
}
