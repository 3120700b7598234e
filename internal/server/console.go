package server

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/livetree/livetree/internal/console"
)

// A Console says how the web console is served.
type Console struct {
	Off   bool
	Dir   string        // with its files, instead of those in the binary
	Label console.Label // names the server in it
}

// handler returns what serves the page; nil if there is none.
func (c Console) handler() (http.Handler, error) {
	if c.Off {
		return nil, nil
	}
	page, err := console.New(console.Options{Dir: c.Dir})
	if errors.Is(err, console.ErrLeftOut) {
		return nil, nil // who built it knows
	}
	if err != nil {
		return nil, err
	}
	return page, nil
}

// dataURLs returns where the data is served, once it is.
func (a *adminSide) dataURLs() []string {
	if urls := a.urls.Load(); urls != nil {
		return *urls
	}
	return []string{}
}

// listening is told that the data is served.
func (a *adminSide) listening(addr net.Addr) {
	a.urls.Store(&[]string{"https://" + reachable(addr)})
}

// run does what the operator's side does beside answering, until the context ends.
func (a *adminSide) run(ctx context.Context) {
	if a.handler != nil {
		a.handler.Run(ctx)
	}
}

// rulesSet is told that the rules of a database were replaced.
func (a *adminSide) rulesSet(ctx context.Context, database, by string) {
	if a.handler != nil {
		a.handler.RulesSet(ctx, database, by)
	}
}

// consoleLine says how to get to the console: by a link that signs in, on a terminal,
// where only who started the server sees it. It is empty if there is no console.
func (a *adminSide) consoleLine(c Config) string {
	if a.handler == nil || !a.handler.HasConsole() {
		return ""
	}
	if c.Terminal {
		return "  console: " + a.handler.Link(a.listener.URL()) + "  (once, 10 minutes)\n"
	}
	return "  console: run livetree console --data " + c.Data + "\n"
}
