package rest

import (
	"net/http"
	"net/netip"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/clientaddr"
)

// addressOf returns the address that a request counts by.
func addressOf(r *http.Request) netip.Addr {
	if remote := clientaddr.Of(r); remote.IsValid() {
		return clientaddr.Network(remote.Addr())
	}
	return netip.Addr{}
}

// client returns whose memory a request takes, as far as that is known by now.
func (u *usage) client() budget.Client {
	c := budget.Client{
		Network: addressOf(u.r), Database: u.database,
		UID: u.who.Auth.Child("uid").Leaf().Text(), Admin: u.who.Admin,
	}
	if u.isMultiplexed() {
		if c.Connection = clientaddr.Of(u.r); !c.Connection.IsValid() {
			c.Connection = netip.AddrPortFrom(netip.Addr{}, 1)
		}
	}
	return c
}
