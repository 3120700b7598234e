package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/loopback"
)

// OperatorVariable holds the credential of the admin listener. It has no flag: others
// on the machine can see those.
const OperatorVariable = "LIVETREE_ADMIN_TOKEN"

// maxOperatorAnswer bounds what is read of an answer of the admin listener, and
// maxOperatorEvent what is read of one event of its streams.
const (
	maxOperatorAnswer = 64 << 20
	maxOperatorEvent  = 1 << 20
)

// An Operator asks the admin listener of a server.
type Operator struct {
	Data string // the data directory of the server
	URL  string // of the listener, if it is not the one that runs on Data
	CA   string // a file with a certificate to trust; if it is empty, what local.Authority returns
	// Lookup returns variables of the environment.
	Lookup func(name string) (string, bool)
}

// base returns where the admin listener is.
func (o *Operator) base() (*url.URL, error) {
	text := o.URL
	if text == "" {
		noted, err := o.file(admin.Dir, admin.AddrFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no server with an admin listener runs on %s: start it, or say where it is with --data or --admin-url", o.Data)
		}
		if err != nil {
			return nil, err
		}
		text = noted
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the URL of the admin listener must be like http://127.0.0.1:9001")
	}
	if base.Scheme == "http" && !loopback.Host(base.Hostname()) {
		return nil, errors.New("the admin listener of another machine needs an https: URL, or the credential could be read on its way")
	}
	return base, nil
}

// file reads a file of the data directory, unless it is another user's.
func (o *Operator) file(names ...string) (string, error) {
	return local.Read(filepath.Join(append([]string{o.Data}, names...)...), "--admin-url")
}

// credential returns that of the admin listener. The one of the environment is not sent to another machine because a
// data directory says so.
func (o *Operator) credential(base *url.URL) (string, error) {
	if token, ok := o.Lookup(OperatorVariable); ok {
		if o.URL == "" {
			return token, local.CheckNoted(o.Data, base.Hostname(), "--admin-url")
		}
		return token, nil
	}
	token, err := o.file(admin.Dir, admin.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the credential of the admin listener, which can also be in %s: %w", OperatorVariable, err)
	}
	return token, nil
}

// transport trusts what the system does, and the server's own authority. It uses
// no proxy: that would see the credential.
func (o *Operator) transport(base *url.URL) (*http.Transport, error) {
	file := cmp.Or(o.CA, local.Authority(o.Data, base.Hostname()))
	if file == "" {
		return &http.Transport{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, nil
}

// send makes a request, and has the answer taken, whatever its status is. The credential
// may be empty.
func (o *Operator) send(ctx context.Context, method, path, credential string, body []byte, take func(*http.Response) error) error {
	base, err := o.base()
	if err != nil {
		return err
	}
	transport, err := o.transport(base)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base.String(), "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	asker := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := asker.Do(r)
	if err != nil {
		return unanswered(ctx, base, err)
	}
	defer answer.Body.Close()
	if err := take(answer); err != nil {
		return unanswered(ctx, base, err)
	}
	return nil
}

// Ask asks something and returns the answer. The request is sent as JSON.
func (o *Operator) Ask(ctx context.Context, method, path string, request any) (text []byte, err error) {
	err = o.ask(ctx, method, path, request, func(r io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(r, maxOperatorAnswer))
		return err
	})
	return text, err
}

// Follow asks for a stream, and tells its events until one is the last. A stream that ends
// before that is an error.
func (o *Operator) Follow(ctx context.Context, method, path string, request any, tell func(event string, data []byte) (last bool, err error)) error {
	return o.ask(ctx, method, path, request, func(r io.Reader) error {
		frames := newFrameReader(r, maxOperatorEvent)
		for {
			f, err := frames.next()
			if err != nil {
				return err
			}
			last, err := tell(f.name, f.data)
			if err != nil {
				return &saidError{err}
			}
			if last {
				return nil
			}
		}
	})
}

// ask has an answer read that is none of an error.
func (o *Operator) ask(ctx context.Context, method, path string, request any, read func(io.Reader) error) error {
	base, err := o.base()
	if err != nil {
		return err // which says more than that there is no credential
	}
	credential, err := o.credential(base)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return o.send(ctx, method, path, credential, body, func(answer *http.Response) error {
		if answer.StatusCode < http.StatusMultipleChoices {
			return read(answer.Body)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxOperatorAnswer))
		if err != nil {
			return err
		}
		return &saidError{operatorRefusal(answer.StatusCode, text)}
	})
}

// Readiness asks whether the server is ready, which needs no credential.
func (o *Operator) Readiness(ctx context.Context) (r admin.Readiness, err error) {
	err = o.send(ctx, http.MethodGet, "/readyz", "", nil, func(answer *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxOperatorAnswer))
		if err != nil {
			return err
		}
		// Not being ready is an answer like another, but for its status.
		if json.Unmarshal(text, &r) != nil || len(r.Checks) == 0 {
			return &saidError{operatorRefusal(answer.StatusCode, text)}
		}
		return nil
	})
	return r, err
}

// A saidError is one that is not about how the server is reached.
type saidError struct{ error }

// unanswered returns why there is no answer: the user did not wait for it, or the
// server did not give it.
func unanswered(ctx context.Context, base *url.URL, err error) error {
	if said, ok := errors.AsType[*saidError](err); ok {
		return said.error
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ErrInterrupted
	}
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err
	}
	return fmt.Errorf("the admin listener at %s does not answer, is the server running? %w", base.Host, err)
}

// operatorRefusal returns the error in an answer.
func operatorRefusal(status int, text []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Error == "" {
		return fmt.Errorf("the admin listener answers %d %s", status, http.StatusText(status))
	}
	return errors.New(answer.Error)
}
