// Package loopback says what only programs on this machine can reach.
//
// The answer decides where a credential may travel without TLS, so it is worked out
// in one place, and never by what a name looks like: 127.example.com is the name of
// another machine. Nothing is looked up.
package loopback

import (
	"net"
	"strings"
)

// Host reports whether a host, a name or an address without brackets, is this
// machine.
func Host(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// Address reports whether the host of an address HOST:PORT is this machine. An
// address without a host is all addresses of the machine, so it is not.
func Address(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && Host(host)
}
