package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Exit codes of the client commands. They follow sysexits.h, as those of the
// server do.
const (
	ExitOther       = 1  // wrong usage, or what has no code of its own
	ExitData        = 65 // the data is wrong: a malformed file, or a body the server refuses
	ExitUnavailable = 69 // the server cannot be reached, or cannot serve now
	ExitFile        = 74 // reading or writing a file failed
	ExitInterrupted = 75 // stopped in the middle; the same command goes on
	ExitProtocol    = 76 // the certificate is refused, or the answer makes no sense
	ExitDenied      = 77 // the credential is missing, wrong, or not enough
)

// A UsageError is a mistake in how a command was called.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// A StatusError is an answer that is not one of success.
type StatusError struct {
	Status int
	Text   string // what the server says
	// Anonymous says that the request carried no credential.
	Anonymous bool
	// RetryAfter is how long the server asks to wait, 0 if it does not.
	RetryAfter time.Duration
	source     bool
}

func (e *StatusError) Error() string {
	who := "the server"
	if e.source {
		who = "the source"
	}
	return fmt.Sprintf("%s answered %d: %s", who, e.Status, strings.TrimSuffix(e.Text, "."))
}

// A ConnectionError says that a server was not reached, or that the connection to
// it broke.
type ConnectionError struct {
	Server string
	// Sent says that the server may have got the request.
	Sent   bool
	source bool
	err    error
}

func (e *ConnectionError) Error() string {
	if e.Sent {
		return fmt.Sprintf("the connection to %s broke: %v", e.Server, e.err)
	}
	return fmt.Sprintf("%s cannot be reached: %v", e.Server, e.err)
}

func (e *ConnectionError) Unwrap() error { return e.err }

// A CertificateError says that the server's certificate is not trusted.
type CertificateError struct {
	Server string
	source bool
	err    error
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("the certificate of %s is refused: %v", e.Server, e.err)
}

func (e *CertificateError) Unwrap() error { return e.err }

// A DataError is a file, or an answer, that is not what it should be.
type DataError struct{ text string }

func (e *DataError) Error() string { return e.text }

func badData(format string, args ...any) error { return &DataError{fmt.Sprintf(format, args...)} }

// ErrInterrupted says that the user stopped a command. It is a context.Canceled.
var ErrInterrupted error = interrupted{}

type interrupted struct{}

func (interrupted) Error() string { return "interrupted" }

func (interrupted) Is(target error) bool { return target == context.Canceled }

// inWords returns an error for people: of a context that was cancelled they know
// only that they have interrupted the command.
func inWords(err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrInterrupted
	}
	return err
}

// failure turns an error of the transport into one of this package. The URL, which
// may carry the credential, is not in it.
func (c *Client) failure(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	_, done := errors.AsType[*ConnectionError](err)
	if done || errors.Is(err, context.Canceled) {
		return err
	}
	server := c.address.url.String()
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &CertificateError{server, c.source, bad.Err}
	}
	if text := err.Error(); c.hide(text) != text {
		err = errors.New(c.hide(text))
	}
	_, isTLS := errors.AsType[tls.RecordHeaderError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	unsent := isOp && op.Op == "dial" || isTLS
	return &ConnectionError{Server: server, Sent: !unsent, source: c.source, err: err}
}

// hide takes the credential out of a text.
func (c *Client) hide(text string) string {
	if c.auth == "" {
		return text
	}
	return strings.NewReplacer(c.auth, "(secret)", url.QueryEscape(c.auth), "(secret)").Replace(text)
}

// errorText returns the text of {"error": "…"}, or the answer itself.
func errorText(resp *http.Response, answer []byte) string {
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &body) == nil && body.Error != "" {
		return body.Error
	}
	text := strings.TrimSpace(string(answer))
	if text == "" || len(text) > 1000 || strings.HasPrefix(text, "<") || bytes.ContainsRune(answer, 0) {
		return http.StatusText(resp.StatusCode)
	}
	return text
}

// Hint returns what to do about an error, or "".
func Hint(err error) string {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return named(status.hint(), status.source)
	}
	if refused, ok := errors.AsType[*CertificateError](err); ok {
		return named("name the authority's certificate with --ca; a Livetree keeps it in its data directory as tls/ca.pem", refused.source)
	}
	if broken, ok := errors.AsType[*ConnectionError](err); ok {
		if strings.Contains(err.Error(), "HTTP response to HTTPS client") {
			return "the server speaks plain HTTP there: use http:// if that is meant"
		}
		return named("is the server running, and is --url right? livetree doctor looks into it", broken.source)
	}
	if isFull(err) {
		return "the disk is full: make room and run the command again"
	}
	return ""
}

// sourceFlags are what the flags and variables of a server are called if it is the
// source of a migration.
var sourceFlags = strings.NewReplacer(", or log in with livetree login", "", ", or log in again with livetree login", "", " or livetree login", "", "LIVETREE_AUTH", "LIVETREE_FROM_AUTH", "--url", "--from", "--ca", "--from-ca", "--db", "--from-db")

func named(hint string, source bool) string {
	if source {
		return sourceFlags.Replace(hint)
	}
	return hint
}

func (e *StatusError) hint() string {
	switch {
	case (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) && e.Anonymous:
		return "set LIVETREE_AUTH to the secret of the database, or log in with livetree login"
	case e.Status == http.StatusUnauthorized:
		return "the credential is not one of this database, or has expired: look at LIVETREE_AUTH, or log in again with livetree login"
	case e.Status == http.StatusForbidden:
		return "the rules of the database do not allow this with the credential of LIVETREE_AUTH or livetree login"
	case e.Status == http.StatusExpectationFailed:
		return "name the database with --db"
	case e.Status == http.StatusNotFound && strings.HasPrefix(e.Text, "use HTTPS"):
		return "begin --url with https://"
	case e.Status == http.StatusNotFound:
		return "is there a database of this name, and is --url the server's address?"
	case e.Status/100 == 3:
		return "give that address as --url if it is to be trusted"
	case strings.HasPrefix(e.Text, "Invalid data; couldn't parse JSON object, array, or value. (1:1:"):
		return `the data must be JSON: a text stands in quotes, '"hello"'`
	case strings.HasPrefix(e.Text, "Error: No data supplied"):
		return "give the data as an argument, with --file, or on the standard input"
	case strings.HasPrefix(e.Text, "orderBy must be defined"):
		return "give --order-by, such as --order-by '$key'"
	case strings.Contains(e.Text, ".indexOn"):
		return "add the index to the rules; livetree rules set uploads them"
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		return "the server is busy: try again later"
	case e.Status == http.StatusInsufficientStorage:
		return "the server's disk is full or failing: it takes no writes until the operator has seen to it"
	}
	return ""
}

// ExitCode returns the exit code that an error gives a command.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.exitCode()
	}
	if _, ok := errors.AsType[*CertificateError](err); ok {
		return ExitProtocol
	}
	if _, ok := errors.AsType[*ConnectionError](err); ok {
		return ExitUnavailable
	}
	if errors.Is(err, ErrCancelled) || errors.Is(err, ErrRevoked) {
		return ExitDenied
	}
	if _, ok := errors.AsType[*DataError](err); ok {
		return ExitData
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitOther
	}
	if _, ok := errors.AsType[*FileError](err); ok || isFull(err) {
		return ExitFile
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	return ExitOther
}

func (e *StatusError) exitCode() int {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return ExitDenied
	case e.Status == http.StatusBadRequest:
		return ExitData
	case e.Status >= 500 || e.Status == http.StatusTooManyRequests:
		return ExitUnavailable
	case e.Status/100 == 3:
		return ExitProtocol
	}
	return ExitOther
}

// isFull reports whether there is no room left on a disk.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// A FileError is a failure to read or write a local file.
type FileError struct{ Err error }

func (e *FileError) Error() string { return e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// A faultWriter remembers that its error was one of writing, so that it is not
// taken for one of the connection.
type faultWriter struct {
	w   io.Writer
	err error
}

func (w *faultWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err = &FileError{err}
		return n, w.err
	}
	return n, nil
}
