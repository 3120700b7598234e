package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// TryCredential asks the server once whether it takes the credential. readsRoot reports whether that may read
// the whole database, which the app secret may; the token of a user need not.
func (c *Client) TryCredential(ctx context.Context) (readsRoot bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	resp, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/.json", Query: url.Values{"shallow": {"true"}}, Repeatable: true})
	if err == nil {
		return true, resp.Body.Close()
	}
	status, ok := errors.AsType[*StatusError](err)
	// The dialect of the hosted service has one status for both, and the text says which.
	denied := ok && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized && status.Text == "Permission denied")
	if denied {
		return false, nil
	}
	return false, err
}
