package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/livetree/livetree/internal/rules"
)

// How a check ends.
const (
	CheckOK      = "ok"
	CheckWarning = "warning"
	CheckFailed  = "failed"
	CheckSkipped = "skipped"
)

// A Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Text   string `json:"text"`         // what was found
	Do     string `json:"do,omitempty"` // what to do about it
}

const (
	// clockTolerance is how much two clocks may differ; tokens allow a minute.
	clockTolerance, clockLimit = 5 * time.Second, time.Minute
	// renewal is how long before its end a certificate should be renewed.
	renewal = 14 * 24 * time.Hour
	// doctorTimeout bounds one check.
	doctorTimeout = 10 * time.Second
)

// Diagnose looks at a server as a client sees it. A check that fails makes those
// that need it be left out.
func (c *Client) Diagnose(ctx context.Context) []Check {
	checks := []Check{c.checkAddress(ctx)}
	if checks[0].Result == CheckFailed {
		return checks
	}
	if c.address.url.Scheme == "https" {
		check := c.checkCertificate(ctx)
		if checks = append(checks, check); check.Result == CheckFailed {
			return checks
		}
	}
	checks = append(checks, c.checkAnswer(ctx)...)
	return append(checks, c.checkRules(ctx))
}

func (c *Client) hostPort() string {
	u := c.address.url
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// checkAddress finds out whether something listens.
func (c *Client) checkAddress(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.hostPort())
	if err == nil {
		defer conn.Close()
		return Check{"address", CheckOK, fmt.Sprintf("%s is reached at %s", c.address.url, conn.RemoteAddr()), ""}
	}
	check := Check{"address", CheckFailed, err.Error(), "start the server (livetree serve), and look at --url, firewalls and its --addr: one on 127.0.0.1 is reached from its own machine alone"}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		check.Do = "the name has no address: look at --url, or add the name to the DNS"
	}
	return check
}

// checkCertificate finds out whether the certificate is trusted, and for how long.
func (c *Client) checkCertificate(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	config := c.http.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = c.address.url.Hostname()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", c.hostPort())
	if err != nil {
		return Check{"certificate", CheckFailed, err.Error(), certificateAdvice(err)}
	}
	defer conn.Close()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	left := leaf.NotAfter.Sub(c.now())
	text := fmt.Sprintf("trusted, from %q, valid for %d days", leaf.Issuer.CommonName, int(left.Hours()/24))
	if left < renewal {
		return Check{"certificate", CheckWarning, text, "renew it; a Livetree renews those that it made itself, and reads those of --tls-cert again when they change"}
	}
	return Check{"certificate", CheckOK, text, ""}
}

func certificateAdvice(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "trust its authority: --ca with the file tls/ca.pem of the server's data directory"
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate is for %v: use one of these names in --url, or start the server with --domain or --tls-cert", host.Certificate.DNSNames)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "it has expired, or a clock is wrong: renew it, and look at the clocks of both machines"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "there is no TLS: is this the address of something else, or of plain HTTP?"
	}
	return "look at what the server logs about it"
}

// checkAnswer finds out whether the database answers, and whether the clocks agree.
func (c *Client) checkAnswer(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	sent := c.now()
	// No HEAD: its answer would not say what is wrong.
	resp, err := c.send(ctx, c.address.target("/.json", url.Values{"shallow": {"true"}}), Request{Method: http.MethodGet})
	if err != nil {
		return []Check{{"database", CheckFailed, err.Error(), Hint(err)}}
	}
	defer resp.Body.Close()
	checks := []Check{checkClock(resp.Header.Get("Date"), sent, c.now())}
	switch {
	case resp.StatusCode == http.StatusOK && c.auth == "":
		return append(checks, Check{"database", CheckWarning, "everybody can read the root", "close it in the rules, unless that is meant"})
	case resp.StatusCode == http.StatusOK:
		return append(checks, Check{"database", CheckOK, "it answers, and the credential may read the root", ""})
	case resp.StatusCode == http.StatusForbidden || c.auth == "" && resp.StatusCode == http.StatusUnauthorized:
		return append(checks, Check{"database", CheckOK, "it answers, and does not let this credential read the root", ""})
	}
	refusal := c.refusal(resp)
	return append(checks, Check{"database", CheckFailed, refusal.Error(), Hint(refusal)})
}

// checkClock compares the date of an answer with our time before and after it: a slow
// server, or a slow way to it, is not a wrong clock.
func checkClock(date string, sent, received time.Time) Check {
	theirs, err := http.ParseTime(date) // without the part of a second that has passed
	if err != nil {
		return Check{"clock", CheckSkipped, "the server does not tell its time", ""}
	}
	difference := max(sent.Sub(theirs.Add(time.Second)), theirs.Sub(received), 0).Round(time.Second)
	text := fmt.Sprintf("the clocks differ by %s", difference)
	switch {
	case difference >= clockLimit:
		return Check{"clock", CheckFailed, text, "set the clocks of both machines by NTP: tokens are refused otherwise"}
	case difference > clockTolerance:
		return Check{"clock", CheckWarning, text, "set the clocks of both machines by NTP"}
	}
	return Check{"clock", CheckOK, text, ""}
}

// checkRules finds out whether the rules open everything.
func (c *Client) checkRules(ctx context.Context) Check {
	if c.auth == "" {
		return Check{"rules", CheckSkipped, "the rules are shown to the holder of the secret alone", "set LIVETREE_AUTH to have them looked at"}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	document, err := c.Bytes(ctx, Request{Method: http.MethodGet, Path: RulesPath, Repeatable: true})
	if err != nil {
		return Check{"rules", CheckWarning, err.Error(), Hint(err)}
	}
	ruleset, err := rules.Compile(string(document))
	if err != nil {
		return Check{"rules", CheckFailed, "the rules do not compile", "livetree rules get and livetree rules check show why"}
	}
	if read, write := ruleset.OpensRoot(); read || write {
		what := map[bool]string{true: "read and write", false: "read"}[write && read]
		if !read {
			what = "write"
		}
		return Check{"rules", CheckFailed, "the rules let everybody " + what + " everything", "close the root and open only what is meant: livetree rules set"}
	}
	return Check{"rules", CheckOK, "the root is not open to everybody", ""}
}
