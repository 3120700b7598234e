package clientaddr_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/livetree/livetree/internal/clientaddr"
)

func TestOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80":             "192.0.2.1:80",
		"[::ffff:192.0.2.1]:80":    "192.0.2.1:80",
		"[2001:db8::1]:443":        "[2001:db8::1]:443",
		"[fe80::1%eth0]:443":       "[fe80::1]:443",
		"[::ffff:192.0.2.1%e0]:80": "192.0.2.1:80",
		"192.0.2.1":                "invalid AddrPort",
		"pipe":                     "invalid AddrPort",
		"":                         "invalid AddrPort",
	} {
		if got := clientaddr.Of(&http.Request{RemoteAddr: remote}).String(); got != want {
			t.Errorf("the client of a request from %q is %s, want %s", remote, got, want)
		}
	}
}

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":                     "192.0.2.1",
		"::ffff:192.0.2.1":              "192.0.2.1",
		"2001:db8:1:2:3:4:5:6":          "2001:db8:1:2::",
		"2001:db8:1:2:ffff::":           "2001:db8:1:2::",
		"2001:db8:1:3::":                "2001:db8:1:3::",
		"fe80::1%eth0":                  "fe80::",
		"::1":                           "::",
		"2001:db8::192.0.2.1":           "2001:db8::",
		"64:ff9b::192.0.2.1":            "64:ff9b::",
		"ffff:ffff:ffff:ffff:ffff::255": "ffff:ffff:ffff:ffff::",
	} {
		if got := clientaddr.Network(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("the client at %s counts by %s, want %s", addr, got, want)
		}
	}
	if got := clientaddr.Network(netip.Addr{}); got.IsValid() {
		t.Errorf("no address counts by %s", got)
	}
}
