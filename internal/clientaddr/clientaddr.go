// Package clientaddr says which address a client counts by.
//
// Everything that is shared between clients by their addresses, such as connections,
// request rates and the memory for bodies, counts by Network, and takes the address of
// a request from Of. So one client is the same client everywhere. Proxies finds the
// client of a request that came through a proxy.
//
// The package does no input or output, and knows nothing of credentials.
package clientaddr

import (
	"net/http"
	"net/netip"
)

// Of returns the address of a request's client and the port of its connection. It is
// not valid if the request does not say where it comes from.
func Of(r *http.Request) netip.AddrPort {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(plain(remote.Addr()), remote.Port())
}

// Network returns the address that stands for all addresses which one client can
// choose from: a client with an IPv6 address has a network of 64 bits. One whose IPv4
// address is written as IPv6 is the client of the IPv4 address.
func Network(addr netip.Addr) netip.Addr {
	addr = plain(addr)
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}

// plain returns an address in the one way of writing it.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
