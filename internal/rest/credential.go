package rest

import (
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// owner is the credential that SDKs in emulator mode send.
const owner = "owner"

var errCredential = fault.New(fault.Unauthenticated, "Could not parse auth token.")

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
	if c.database == nil || byAuth && auth.IsAccessToken(credential) { // it has no credentials yet; those are not for auth
		return errCredential
	}
	c.who, err = c.database.Identify(c.r.Context(), credential)
	return err
}

// credential returns the one credential of the request, and whether it came in
// the parameter auth.
func (c *call) credential(values values) (credential string, byAuth bool, err error) {
	headers := c.r.Header.Values("Authorization")
	for _, header := range headers {
		if scheme, _, _ := strings.Cut(header, " "); !strings.EqualFold(scheme, "Bearer") {
			return "", false, errCredential
		}
	}
	take := func(given string) {
		switch {
		case err != nil:
		case given == "":
			err = errCredential
		case credential != "" && given != credential:
			err = fault.New(fault.Unauthenticated, "the request carries two different credentials")
		default:
			credential = given
		}
	}
	for _, given := range values["auth"] {
		take(given)
	}
	for _, given := range values["access_token"] {
		take(given)
	}
	for _, header := range headers {
		_, token, _ := strings.Cut(header, " ")
		take(strings.TrimSpace(token))
	}
	if err != nil {
		return "", false, err
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
