package dev

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/livetree/livetree/internal/hosts"
)

var errNoOrigin = errors.New("it must be an origin such as https://app.example.com, without a path, or null")

// CheckNames refuses names and origins that no request can have.
func (g *Guard) CheckNames() error {
	for _, host := range g.Names {
		if err := hosts.CheckHost(host); err != nil {
			return fmt.Errorf("--dev-host %s: %w", host, err)
		}
	}
	for _, origin := range g.Origins {
		if !isOrigin(origin) {
			return fmt.Errorf("--dev-origin %s: %w", origin, errNoOrigin)
		}
	}
	return nil
}

// isOrigin reports whether a text can be what browsers send as Origin. "null" is that of files.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == "null" || err == nil && u.Scheme != "" && u.Host != "" && strings.EqualFold(u.Scheme+"://"+u.Host, text)
}
