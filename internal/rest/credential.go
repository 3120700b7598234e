package rest

import (
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// owner is the credential that SDKs in emulator mode send.
const owner = "owner"

// identify finds out who asks.
func (c *call) identify(values values) error {
	credential, byAuth, err := c.credential(values)
	if err != nil || credential == "" {
		return err
	}
	if credential == owner && !byAuth && c.ownerAllowed() {
		c.who = auth.Identity{Admin: true, Operator: true}
		return nil
	}
	if c.database == nil { // it has no credentials yet
		return fault.New(fault.Unauthenticated, "Could not parse auth token.")
	}
	c.who, err = c.database.Identify(c.r.Context(), credential)
	return err
}

// credential returns the one credential of the request, and whether it came in
// the parameter auth.
func (c *call) credential(values values) (credential string, byAuth bool, err error) {
	var all []string
	all = append(all, values["auth"]...)
	all = append(all, values["access_token"]...)
	for _, header := range c.r.Header.Values("Authorization") {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", false, fault.New(fault.Unauthenticated, "Could not parse auth token.")
		}
		all = append(all, strings.TrimSpace(token))
	}
	for _, other := range all {
		if other == "" {
			return "", false, fault.New(fault.Unauthenticated, "Could not parse auth token.")
		}
		if other != all[0] {
			return "", false, fault.New(fault.Unauthenticated, "the request carries two different credentials")
		}
		credential = other
	}
	return credential, len(values["auth"]) > 0, nil
}

// ownerAllowed reports whether `owner` is an administrator: under --dev, for a
// client on this machine and not for one behind a proxy.
func (c *call) ownerAllowed() bool {
	if !c.opts.Dev {
		return false
	}
	for name := range c.r.Header {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return true
}

// overrideIdentity lets an administrator ask as somebody else.
func (c *call) overrideIdentity() error {
	if c.params.override == nil {
		return nil
	}
	if !c.who.Admin {
		return fault.New(fault.Denied, "auth_variable_override needs an administrator's credential")
	}
	variable, err := tree.DecodeClaims([]byte(*c.params.override))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "auth_variable_override must be a JSON value: %v", err)
	}
	c.who = c.who.As(variable)
	return nil
}
