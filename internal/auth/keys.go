package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A key of an issuer. Its type decides on the algorithm.
type key struct {
	id        string
	algorithm string
	public    any
}

// verifies reports whether the token was signed with the key.
func (k key) verifies(t *token) bool {
	if t.algorithm != k.algorithm {
		return false
	}
	signed, err := jose.ParseSignedCompact(t.text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(k.algorithm)})
	if err != nil {
		return false
	}
	_, err = signed.Verify(k.public)
	return err == nil
}

const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192
)

// parseKeys reads a key set (RFC 7517), or an object of certificates in PEM by
// the ids of their keys, as Google publishes them. Keys that are for something
// else are left out; there may be none left.
func parseKeys(text []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		if keys, ok := parseCertificates(text); ok {
			return keys, nil
		}
		return nil, errors.New("it is neither a JSON web key set nor an object of certificates")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has more than %d keys", maxKeys)
	}
	var keys []key
	for _, text := range set.Keys {
		if k, ok := parseKey(text); ok {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// parseCertificates reads certificates by the ids of their keys. When they end
// does not matter: the issuer takes them out of the set when it is time.
func parseCertificates(text []byte) ([]key, bool) {
	var set map[string]string
	if json.Unmarshal(text, &set) != nil || len(set) == 0 || len(set) > maxKeys {
		return nil, false
	}
	var keys []key
	for id, certificate := range set {
		block, _ := pem.Decode([]byte(certificate))
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, false
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, false
		}
		if k, ok := publicKey(id, parsed.PublicKey); ok {
			keys = append(keys, k)
		}
	}
	return keys, true
}

// parseKey returns a key if it is a public one for signatures by an algorithm of
// ours. A private key is not taken for its public half: whoever publishes one
// should not be believed.
func parseKey(text []byte) (key, bool) {
	var web jose.JSONWebKey
	if web.UnmarshalJSON(text) != nil || !web.Valid() || web.Use != "" && web.Use != "sig" {
		return key{}, false
	}
	k, ok := publicKey(web.KeyID, web.Key)
	return k, ok && (web.Algorithm == "" || web.Algorithm == k.algorithm)
}

// publicKey returns a key if it is for an algorithm of ours.
func publicKey(id string, public any) (key, bool) {
	k := key{id: id, public: public}
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return key{}, false
		}
		k.algorithm = rs256
	case *ecdsa.PublicKey:
		if public.Curve != elliptic.P256() {
			return key{}, false
		}
		k.algorithm = es256
	case ed25519.PublicKey:
		k.algorithm = eddsa
	default:
		return key{}, false
	}
	return k, true
}

const (
	// refetchAfter is how long no other fetch is made after one, whatever comes:
	// tokens with invented key ids must not make us a burden to the issuer.
	refetchAfter = time.Minute
	// retryAfter is the same as long as no fetch has succeeded.
	retryAfter = 10 * time.Second
	// fetchTimeout bounds a fetch. It is below retryAfter.
	fetchTimeout = 5 * time.Second
)

// A keySet holds the keys of one issuer.
//
// They are fetched when the first token comes, when they have become too old,
// and when a token names a key that is not among them; by the request that finds
// so, and by no more than one at a time. Keys stay in use until a fetch succeeds:
// the server does without the issuer for as long as it must.
type keySet struct {
	source source // nil if the keys never change
	now    func() time.Time
	logger *slog.Logger

	mu         sync.Mutex
	keys       []key
	generation uint64        // how often keys have changed
	text       string        // of the key set that keys was read from
	fetched    bool          // keys is what the issuer said once
	staleAt    time.Time     // when keys should be fetched again
	tried      time.Time     // when the last fetch began
	fetching   chan struct{} // closed when the fetch that goes on ends; nil if none does
}

func newKeySet(config Issuer, opts Options) (*keySet, error) {
	s := &keySet{now: opts.Now, logger: opts.Logger.With("issuer", config.URL)}
	var err error
	if config.Keys != nil {
		if config.JWKS != "" {
			return nil, errors.New("it has a key set and a place to fetch one from")
		}
		if s.keys, err = parseKeys(config.Keys); err != nil {
			return nil, fmt.Errorf("its key set: %w", err)
		}
		s.fetched = true
		return s, nil
	}
	if s.source, err = newSource(config, opts.Transport); err != nil {
		return nil, err
	}
	if _, ok := s.source.(fileSource); ok {
		// A wrong path should not wait for the first token.
		if err := s.fetch(context.Background()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// verify checks the signature of a token, which it may fetch keys for. It returns
// the generation of the keys that it was checked with.
func (s *keySet) verify(ctx context.Context, t *token) (generation uint64, err error) {
	keys, generation, err := s.find(ctx, t)
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		if k.verifies(t) {
			return generation, nil
		}
	}
	return 0, errSignature
}

// stands reports whether a token that was verified with keys of this generation
// is verified now: the keys are the same, and it is not time to ask for them.
func (s *keySet) stands(generation uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation == generation && !s.dueLocked(true)
}

// find returns the keys that a token may have been signed with, at least one, and
// their generation.
func (s *keySet) find(ctx context.Context, t *token) (found []key, generation uint64, err error) {
	for {
		s.mu.Lock()
		found, generation = s.matchLocked(t), s.generation
		due, fetching := s.dueLocked(len(found) > 0), s.fetching
		if due && fetching == nil {
			s.tried = s.now()
			s.fetching = make(chan struct{})
		}
		fetched := s.fetched
		s.mu.Unlock()

		switch {
		case due && fetching == nil:
			s.refetch(ctx)
		case len(found) > 0:
			return found, generation, nil
		case fetching != nil:
			if err := await(ctx, fetching); err != nil {
				return nil, 0, err
			}
		case !fetched:
			return nil, 0, errNoKeys
		default:
			return nil, 0, errKeyID
		}
	}
}

// matchLocked returns the keys that the header of a token names. Without a key
// id there must be only one for its algorithm.
func (s *keySet) matchLocked(t *token) []key {
	var found []key
	for _, k := range s.keys {
		if k.algorithm == t.algorithm && (t.keyID == "" || t.keyID == k.id) {
			found = append(found, k)
		}
	}
	if t.keyID == "" && len(found) > 1 {
		return nil
	}
	return found
}

// dueLocked reports whether a fetch may be made now and would be of use.
func (s *keySet) dueLocked(found bool) bool {
	now := s.now()
	if s.source == nil || found && now.Before(s.staleAt) {
		return false
	}
	wait := refetchAfter
	if !s.fetched {
		wait = retryAfter
	}
	return s.tried.IsZero() || now.Sub(s.tried) >= wait
}

// refetch fetches the keys and lets those go on who wait for it. The fetch does
// not end with the request that makes it, or one that leaves early could use up
// the minute.
func (s *keySet) refetch(ctx context.Context) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.fetching)
		s.fetching = nil
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	if err := s.fetch(ctx); err != nil {
		s.logger.Warn("the keys of an issuer cannot be fetched", "error", err)
	}
}

func (s *keySet) fetch(ctx context.Context) error {
	text, maxAge, err := s.source.fetch(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("the key set: %w", err)
	}
	s.mu.Lock()
	changed := s.text != string(text)
	s.keys, s.text, s.fetched, s.staleAt = keys, string(text), true, s.now().Add(maxAge)
	if changed {
		s.generation++
	}
	s.mu.Unlock()
	if changed {
		s.logger.Info("an issuer has new keys", "keys", len(keys))
	}
	return nil
}
