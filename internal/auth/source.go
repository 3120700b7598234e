package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/loopback"
)

// A source is where the key set of an issuer comes from.
type source interface {
	// fetch returns the text of the key set and how long it is good for.
	fetch(ctx context.Context) (text []byte, maxAge time.Duration, err error)
}

const (
	// maxDocument bounds a key set and a discovery document. Large providers need
	// some 20 KiB.
	maxDocument = 256 << 10
	// A key set is good for what its max-age says, within these bounds.
	minAge, maxAge = refetchAfter, 24 * time.Hour
	// defaultAge is for an answer that says nothing.
	defaultAge = time.Hour
)

func newSource(config Issuer, transport http.RoundTripper) (source, error) {
	if path, ok := strings.CutPrefix(config.JWKS, "file://"); ok {
		if !strings.HasPrefix(path, "/") {
			return nil, errors.New("the file of its key set needs an absolute path: file:///etc/keys.json")
		}
		return fileSource{path}, nil
	}
	address, what := config.JWKS, "the URL of its key set"
	if address == "" {
		address, what = config.URL, "its URL"
	}
	if err := checkURL(address); err != nil {
		return nil, fmt.Errorf("%s %w", what, err)
	}
	client := &http.Client{
		Transport: transport,
		// A redirect would lead away from the address that was configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &webSource{client: client, issuer: config.URL, jwks: config.JWKS}, nil
}

// checkURL makes sure that nobody on the way can exchange the keys.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("is not a plain URL with a host")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("is neither an https: nor a file: URL")
	}
	if !loopback.Host(u.Hostname()) {
		return errors.New("is plain http: to another machine; use https:, or a file: URL for its key set")
	}
	return nil
}

// withoutPassword returns a URL as errors may show it.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	return u.Redacted()
}

// A fileSource is a key set on this machine, for tests and for networks of their
// own. It is read anew as one on the web is, so keys can be changed.
type fileSource struct{ path string }

func (s fileSource) fetch(context.Context) ([]byte, time.Duration, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := readDocument(file)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", s.path, err)
	}
	return text, minAge, nil
}

// A webSource is a key set that is fetched over HTTP.
type webSource struct {
	client *http.Client
	issuer string
	jwks   string // its URL; "" if the discovery document names it
}

func (s *webSource) fetch(ctx context.Context) ([]byte, time.Duration, error) {
	address := s.jwks
	if address == "" {
		var err error
		if address, err = s.discover(ctx); err != nil {
			return nil, 0, err
		}
	}
	text, header, err := s.get(ctx, address)
	if err != nil {
		return nil, 0, err
	}
	return text, ageOf(header), nil
}

// discover asks the issuer for the URL of its key set (OpenID Connect Discovery
// 1.0). It is the one address that does not stand in the configuration.
func (s *webSource) discover(ctx context.Context) (string, error) {
	address := strings.TrimSuffix(s.issuer, "/") + "/.well-known/openid-configuration"
	text, _, err := s.get(ctx, address)
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s is not a discovery document", address)
	}
	if document.Issuer != s.issuer {
		return "", fmt.Errorf("%s is about another issuer, %q", address, document.Issuer)
	}
	if err := checkURL(document.JWKS); err != nil {
		return "", fmt.Errorf("%s: the jwks_uri %q %w", address, document.JWKS, err)
	}
	if strings.HasPrefix(s.issuer, "https:") && !strings.HasPrefix(document.JWKS, "https:") {
		return "", fmt.Errorf("%s: the jwks_uri %q is not an https: URL", address, document.JWKS)
	}
	return document.JWKS, nil
}

func (s *webSource) get(ctx context.Context, address string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("get %s: status %d", address, response.StatusCode)
	}
	text, err := readDocument(response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("get %s: %w", address, err)
	}
	return text, response.Header, nil
}

func readDocument(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("more than %d bytes", maxDocument)
	}
	return text, err
}

// ageOf returns how long an answer is good for, by its Cache-Control.
func ageOf(header http.Header) time.Duration {
	for directive := range strings.SplitSeq(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(name, "max-age") {
			continue
		}
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			return min(max(time.Duration(seconds)*time.Second, minAge), maxAge)
		}
	}
	return defaultAge
}
