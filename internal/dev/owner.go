package dev

import (
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// Owner is the credential that SDKs in emulator mode send.
const Owner = "owner"

// AllowsOwner reports whether Owner is an administrator's credential in a request: for a
// client on this machine and not for one behind a proxy.
func (g *Guard) AllowsOwner(header http.Header) bool {
	if !g.On {
		return false
	}
	for name := range header {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return true
}

// OwnerIdentity returns who brings the credential Owner.
func OwnerIdentity() auth.Identity {
	return auth.Identity{Admin: true, Operator: true, By: tree.ByOperator}
}
