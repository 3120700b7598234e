// Package demo is the command livetree demo: a server with a chat to try things on.
//
// It runs the server as livetree serve does, on a directory of its own that goes when it ends, or on one that it is
// given. As soon as the server listens it is filled over its own interface, by the secret in the directory, as any
// client would: rules, members, some thousand messages. Then one message after the other is written, so that there
// is something to watch.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/server"
)

const (
	anyPort = "127.0.0.1:0"
	// rest is the time between two messages that are written while the demo runs, and mostWritten bounds them.
	rest        = 2 * time.Second
	mostWritten = 10_000
)

// Surroundings are what the command has from the program that it is part of.
type Surroundings struct {
	// Takes bounds the arguments of a command by their names.
	Takes func(names ...string) cobra.PositionalArgs
	// Run runs a server until the context ends. It fills in what only the program knows.
	Run func(ctx context.Context, c server.Config) error
	// Logger is told what happens, from warnings on.
	Logger func() *slog.Logger
	// Out is where the demo says what to try.
	Out func() io.Writer
	// GroupID is the group of the command in the help.
	GroupID string
}

// Command returns the command livetree demo.
func (s Surroundings) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo [flags]",
		Short: "run a server with a chat in it, to try things on",
		Long: `livetree demo runs a server that holds a chat: three rooms with some thousand messages,
their members, a directory of people, the rules of livetree docs rules, and an index. It
prints three lines to try, and writes a message every two seconds for you to watch.

The data is in a directory of its own, which is deleted when the demo ends, or in the one
of --data, which stays. Only programs on this machine reach it.`,
		Example: "  livetree demo\n  livetree demo --data ./chat --addr 127.0.0.1:9000",
		GroupID: s.GroupID,
		Args:    s.Takes(),
	}
	data := c.Flags().String("data", "", "a `directory` for the data, which stays; one that holds other data is refused")
	addr := cli.HostPort(anyPort)
	c.Flags().Var(&addr, "addr", "the `host:port` for HTTPS, on this machine; port 0 picks one")
	c.RunE = func(c *cobra.Command, _ []string) error {
		// Variables are for the server that somebody really uses.
		if !cli.IsTyped(c.Flags(), "data") {
			*data = ""
		}
		if !cli.IsTyped(c.Flags(), "addr") {
			addr = anyPort
		}
		if !loopback.Address(string(addr)) {
			return fmt.Errorf("--addr=%s: a demo is for this machine only: listen on 127.0.0.1", addr)
		}
		return s.demo(c.Context(), *data, string(addr))
	}
	return c
}

// demo runs the server and fills it.
func (s Surroundings) demo(ctx context.Context, data, addr string) (err error) {
	given := data != ""
	if !given {
		if data, err = os.MkdirTemp("", "livetree-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(announced, 1)
	played := make(chan error, 1)
	go func() {
		defer cancel() // a demo that cannot be filled ends
		played <- s.play(ctx, data, given, first)
	}()
	config := server.Config{
		Data: data, Addr: addr, AdminAddr: anyPort, DefaultDatabase: "default", CacheBytes: 64 << 20,
		Logger: s.Logger(), Out: first,
		Limits: server.Limits{DrainAccept: time.Millisecond, DrainRequests: time.Second}, // nobody depends on it
	}
	err = s.Run(ctx, config)
	cancel()
	return errors.Join(err, <-played)
}

// An announced gets what the server says when it listens.
type announced chan string

func (a announced) Write(p []byte) (int, error) {
	select {
	case a <- string(p):
	default: // only the first is waited for
	}
	return len(p), nil
}

// play fills the server, says what to try, and writes messages until the context ends.
func (s Surroundings) play(ctx context.Context, data string, given bool, first announced) error {
	var said string
	select {
	case said = <-first:
	case <-ctx.Done():
		return nil // the server did not start, or was stopped at once
	}
	c, err := client.New(client.Options{Data: data})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := fill(ctx, c); err != nil {
		return unlessEnded(ctx, err)
	}
	cli.Say(s.Out(), s.text(said, data, given))
	return unlessEnded(ctx, chatter(ctx, c))
}

// unlessEnded returns an error, but none of a context that has ended: then all is as it should be.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// fill puts the chat into an empty database. One that holds a chat already is left as it is.
func fill(ctx context.Context, c *client.Client) error {
	empty, err := c.IsEmpty(ctx, "/")
	if err != nil {
		return err
	}
	if !empty {
		noChat, err := c.IsEmpty(ctx, "/rooms/"+rooms[0]+"/messages")
		if err == nil && noChat {
			err = errors.New("the directory of --data holds other data than that of a demo: name one that is not there yet")
		}
		return err
	}
	if err := put(ctx, c, client.RulesPath, []byte(Rules)); err != nil {
		return err
	}
	tree, err := chat(time.Now()) //nolint:forbidigo // the chat is of today
	if err != nil {
		return err
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return put(ctx, c, "/.json", text)
}

func put(ctx context.Context, c *client.Client, path string, body []byte) error {
	_, err := c.Copy(ctx, io.Discard, client.Request{Method: http.MethodPut, Path: path, Body: bytes.NewReader(body), Repeatable: true})
	return err
}

// chatter writes messages to the first room.
func chatter(ctx context.Context, c *client.Client) error {
	at, err := client.Location("/rooms/" + rooms[0] + "/messages")
	if err != nil {
		return err
	}
	for n := range mostWritten {
		if err := pause.For(ctx, rest); err != nil {
			return err
		}
		text, err := json.Marshal(say(0, n, map[string]string{".sv": "timestamp"}))
		if err != nil {
			return err
		}
		if _, err := c.Bytes(ctx, client.Request{Method: http.MethodPost, Path: at, Body: bytes.NewReader(text)}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// text says where the demo is, and what to try.
func (s Surroundings) text(said, data string, given bool) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		if strings.Contains(line, "listening on") || strings.HasPrefix(line, "  console") {
			b.WriteString(line)
		}
	}
	at := " --data " + cli.QuoteShell(data)
	fmt.Fprintf(&b, `
A chat: %d rooms with %d messages each, %d people, rules and an index. Every two seconds there
is a new message. Try, in another terminal:

  streams  livetree watch /rooms/blue/messages --order-by at --limit-to-last 2%s
  queries  livetree get /rooms/blue/messages --order-by at --limit-to-last 3%s
  rules    livetree rules simulate read /rooms/blue --as '{"uid": "eve"}'%s

`, len(rooms), messagesPerRoom, people, at, at, at)
	if given {
		b.WriteString("^C ends the demo; the data stays.\n")
	} else {
		b.WriteString("^C ends the demo and deletes its data.\n")
	}
	return b.String()
}
