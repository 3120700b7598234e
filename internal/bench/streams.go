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
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/bench/process"
)

// streamsName is the peer that holds the clients of many streams, or websockets. They
// are in a process of their own because one process may have too few file descriptors
// for those of both sides. It takes commands from its input, one a line,
//
//	open ADDR PATH N CAFILE    opens streams and waits for the first event of all
//	await                      waits until all have another event
//
// and those of sockets.go, and answers each with a line of JSON.
const streamsName = "streams"

// A crowdAnswer is the answer to a command. Failure is empty if all is well.
type crowdAnswer struct {
	Failure string
	Times   []time.Duration
}

// streamClients are the clients of one side, as the run commands them.
type streamClients struct{ process *process.Process }

// startClients starts a process for clients.
func startClients(ctx context.Context, executable string) (*streamClients, error) {
	p, err := process.Start(ctx, executable, PeerArgument, streamsName)
	if err != nil {
		return nil, err
	}
	return &streamClients{p}, nil
}

// open has n clients watch a path, by streams or, with the command listen, websockets.
func (c *streamClients) open(ctx context.Context, command string, s *side, path string, n int) error {
	if err := c.command("%s %s %s %d %s", command, s.addr, path, n, s.caFile); err != nil {
		return cause(ctx, err)
	}
	return nil
}

func (c *streamClients) await() error { return c.command("await") }

func (c *streamClients) command(format string, args ...any) error {
	_, err := c.ask(format, args...)
	return err
}

// ask gives a command and returns its answer.
func (c *streamClients) ask(format string, args ...any) (answer crowdAnswer, err error) {
	if _, err := fmt.Fprintf(c.process.In, format+"\n", args...); err != nil {
		return answer, err
	}
	text, err := c.process.Lines.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("the clients of the streams: %w %s", err, c.process.Said)
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Failure != "" {
		return answer, errors.Join(errors.New("the clients of the streams: "+answer.Failure), err)
	}
	return answer, nil
}

func (c *streamClients) close() {
	c.process.Serve()
	c.process.Close()
}

// A crowd is the clients in their own process.
type crowd struct {
	streams int64
	got     atomic.Int64
	all     chan struct{} // has a value when all have got another event
	failed  chan error
	sockets []*socket // those that listen
	lagging *socket   // the one more
}

func runStreamClients(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &crowd{all: make(chan struct{}, 1), failed: make(chan error, 1)}
	answers := json.NewEncoder(out)
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		times, err := c.obey(ctx, strings.Fields(commands.Text()))
		answer := crowdAnswer{Times: times}
		if err != nil {
			answer.Failure = err.Error()
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return commands.Err()
}

func (c *crowd) obey(ctx context.Context, command []string) (times []time.Duration, err error) {
	switch {
	case len(command) == 1 && command[0] == "await":
		return nil, c.await()
	case len(command) != 5 || command[0] != "open":
		return c.obeySockets(ctx, command)
	}
	if _, err := fmt.Sscan(command[3], &c.streams); err != nil {
		return nil, err
	}
	config, err := trusting(command[4])
	if err != nil {
		return nil, err
	}
	if err := c.open(ctx, command[1], command[2], config); err != nil {
		return nil, err
	}
	return nil, c.await()
}

// open opens the streams.
func (c *crowd) open(ctx context.Context, addr, path string, config *tls.Config) error {
	return c.each(func() error {
		conn, err := dial(ctx, addr, config)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", path, addr); err != nil {
			return err
		}
		go c.count(conn)
		return nil
	})
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
		c.add(events)
	}
}

// add counts events.
func (c *crowd) add(events int64) {
	for range events {
		if c.got.Add(1)%c.streams == 0 {
			c.all <- struct{}{}
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
