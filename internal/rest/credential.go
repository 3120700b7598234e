package rest

import (
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

var errCredential = fault.New(fault.Unauthenticated, "Could not parse auth token.")

// identify finds out who asks.
func (c *call) identify() error {
	credential, byAuth, err := credentialOf(c.r.Header, c.given)
	if err != nil || credential == "" {
		return err
	}
	if credential == dev.Owner && !byAuth && c.guard.AllowsOwner(c.r.Header) {
		c.who = dev.OwnerIdentity()
		noteIdentified(c.w)
		return nil
	}
	if c.database == nil || byAuth && auth.IsAccessToken(credential) { // it has no credentials yet; those are not for auth
		return errCredential
	}
	c.proved = c.database.Published().Settings // before it is asked
	if c.who, err = c.database.Identify(c.usage.queued(c.r.Context()), credential); err == nil {
		noteIdentified(c.w)
	}
	return err
}

var errRevoked = fault.New(fault.Unauthenticated, "credential is no longer valid")

// stands fails if the credential is not good any more. A body may take hours: what it brings
// must not be written for somebody who may not write by then.
func (c *call) stands() error {
	hasExpired := !c.who.Expires.IsZero() && !c.opts.Now().Before(c.who.Expires)
	if c.who.Basis == "" || c.proved == c.database.Published().Settings && !hasExpired || c.database.Holds(c.who) {
		return nil
	}
	if err := c.database.Standing(); err != nil {
		return err
	}
	if hasExpired {
		return auth.ErrExpired
	}
	return errRevoked
}

// Credential returns the credential of a request, empty if it carries none that a
// handler would look at. It may be anything that a client has made up.
func Credential(r *http.Request) string {
	values, err := parseQuery(r.URL.RawQuery, nil)
	if err != nil {
		return ""
	}
	credential, _, _ := credentialOf(r.Header, values) // empty with an error
	return strings.Clone(credential)                   // it may be needed for longer than the head that it is a part of
}

// credentialOf returns the one credential of a request, and whether it came in the
// parameter auth.
func credentialOf(header http.Header, all values) (credential string, byAuth bool, err error) {
	headers := header.Values("Authorization")
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
	byParameter := all.named("auth")
	for _, given := range byParameter {
		take(given.text)
	}
	for _, given := range all.named("access_token") {
		take(given.text)
	}
	for _, header := range headers {
		_, token, _ := strings.Cut(header, " ")
		take(strings.TrimSpace(token))
	}
	if err != nil {
		return "", false, err
	}
	return credential, len(byParameter) > 0, nil
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
