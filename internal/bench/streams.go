package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// streamsName is the peer that holds the clients of many streams. They are in a
// process of their own because one process may have too few file descriptors for
// those of both sides. It takes commands from its input, one a line,
//
//	open ADDR PATH N CAFILE    opens streams and waits for the first event of all
//	await                      waits until all have another event
//
// and answers each with a line: a JSON string, which is empty if all is well.
const streamsName = "streams"

// streamClients are the clients of one side, as the run commands them.
type streamClients struct{ process *process }

// openStreams has n clients watch a path.
func openStreams(ctx context.Context, executable string, s *side, path string, n int) (*streamClients, error) {
	p, err := start(ctx, executable, streamsName)
	if err != nil {
		return nil, err
	}
	c := &streamClients{p}
	if err := c.command("open %s %s %d %s", s.addr, path, n, s.caFile); err != nil {
		c.close()
		return nil, cause(ctx, err)
	}
	return c, nil
}

func (c *streamClients) await() error { return c.command("await") }

func (c *streamClients) command(format string, args ...any) error {
	if _, err := fmt.Fprintf(c.process.in, format+"\n", args...); err != nil {
		return err
	}
	text, err := c.process.lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the clients of the streams: %w %s", err, c.process.said)
	}
	var failure string
	if err := json.Unmarshal(text, &failure); err != nil || failure != "" {
		return errors.Join(errors.New("the clients of the streams: "+failure), err)
	}
	return nil
}

func (c *streamClients) close() {
	c.process.serve()
	c.process.close()
}

// A crowd is the clients in their own process.
type crowd struct {
	streams int64
	got     atomic.Int64
	all     chan struct{} // has a value when all have got another event
	failed  chan error
}

func runStreamClients(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &crowd{all: make(chan struct{}, 1), failed: make(chan error, 1)}
	answers := json.NewEncoder(out)
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		err := c.obey(ctx, strings.Fields(commands.Text()))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if err := answers.Encode(text); err != nil {
			return err
		}
	}
	return commands.Err()
}

func (c *crowd) obey(ctx context.Context, command []string) error {
	switch {
	case len(command) == 5 && command[0] == "open":
		if _, err := fmt.Sscan(command[3], &c.streams); err != nil {
			return err
		}
		config, err := trusting(command[4])
		if err != nil {
			return err
		}
		if err := c.open(ctx, command[1], command[2], config); err != nil {
			return err
		}
		return c.await()
	case len(command) == 1 && command[0] == "await":
		return c.await()
	}
	return fmt.Errorf("what is %q?", command)
}

// open opens the streams, a few at a time.
func (c *crowd) open(ctx context.Context, addr, path string, config *tls.Config) error {
	const atOnce = 8
	var dialers sync.WaitGroup
	var left atomic.Int64
	left.Store(c.streams)
	for range atOnce {
		dialers.Go(func() {
			for left.Add(-1) >= 0 {
				conn, err := dial(ctx, addr, config)
				if err == nil {
					_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", path, addr)
				}
				if err != nil {
					c.fail(err)
					return
				}
				go c.count(conn)
			}
		})
	}
	dialers.Wait()
	return nil
}

func (c *crowd) fail(err error) {
	select {
	case c.failed <- err:
	default: // another one says enough
	}
}

// count counts the events of a stream: each ends with an empty line.
func (c *crowd) count(conn net.Conn) {
	buffer := make([]byte, 512)
	last := byte(0)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			c.fail(fmt.Errorf("a stream ended: %w", err))
			return
		}
		text := buffer[:n]
		events := int64(bytes.Count(text, []byte("\n\n")))
		if last == '\n' && text[0] == '\n' {
			events++
		}
		last = text[n-1]
		for range events {
			if c.got.Add(1)%c.streams == 0 {
				c.all <- struct{}{}
			}
		}
	}
}

func (c *crowd) await() error {
	select {
	case <-c.all:
		return nil
	case err := <-c.failed:
		return err
	case <-time.After(requestTime):
		return fmt.Errorf("only %d of %d streams have got an event", c.got.Load()%c.streams, c.streams)
	}
}
