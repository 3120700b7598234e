// Package freeaddr finds addresses for the servers of tests that must know theirs before
// they start, or that come back to it.
package freeaddr

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports below those that systems give to connections: one of these could otherwise take
// the place of a server that is not there yet, or is down.
const lowest, count = 12_000, 18_000

// List returns addresses of this machine that nothing listens at.
func List(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for tries := 0; len(addrs) < n; tries++ {
		addr := "127.0.0.1:" + strconv.Itoa(lowest+rand.IntN(count)) //nolint:gosec // nothing depends on it that is secret
		l, err := net.Listen("tcp", addr)
		switch {
		case err == nil:
			defer func() { _ = l.Close() }() //nolint:revive // not before all are chosen, so that they differ
			addrs = append(addrs, addr)
		case tries > count:
			t.Fatal(err)
		}
	}
	return addrs
}

// One returns an address of this machine that nothing listens at.
func One(t testing.TB) string {
	t.Helper()
	return List(t, 1)[0]
}
