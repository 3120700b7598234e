package server

import (
	"errors"
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
