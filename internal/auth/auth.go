// Package auth turns a credential into an identity.
//
// A credential is what a client sends. It is one of four things:
//
//   - the app secret of a database, which makes its holder the operator;
//   - an access token, for which the holder of an [Account]'s key has exchanged an
//     assertion: it makes its bearer the operator for an hour;
//   - a token signed with that secret (HS256), as the Firebase token generators
//     make them: what it says in its claim d is the variable auth of rules;
//   - a token of an [Issuer], an identity provider that the server was told to
//     trust (RS256, ES256, EdDSA): auth.uid is its subject, auth.token its claims.
//
// A [Verifier] judges all of them. Three things hold of it:
//
//   - The key decides on the algorithm: a token is only ever checked with a key
//     that is for the algorithm which the token names. Nothing else in a token
//     has a say in how it is checked, and no URL in it is ever looked at.
//   - A token has one spelling and each of its claims stands there once. What is
//     malformed is refused, never skipped.
//   - No error and no log line holds a credential or a part of one.
//
// It knows nothing of requests and of rules. It goes to the network only for the
// keys of issuers, and only to where its options say.
package auth

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// An Identity is who a request comes from. The zero value is nobody in
// particular.
type Identity struct {
	// Admin says that rules do not apply.
	Admin bool
	// Operator says that it may also read and replace the rules: it is the
	// holder of the app secret, or of a service account's key.
	Operator bool
	// Auth is what rules see as auth; no data for nobody. Its keys need not be
	// valid as child names.
	Auth tree.Node
	// Debug says that the token asks for the trace of the rules.
	Debug bool
	// Simulate says that writes are judged and answered, but not made.
	Simulate bool
	// Expires is from when on the identity is not good any more; zero for never.
	Expires time.Time
	// Basis stands for the secret, the key of a service account, or the issuer that the
	// identity rests on, for Verifier.Holds. It is a MAC: it cannot be used to log in, and
	// means nothing to a Verifier with another AccessKey. With the same one it outlives the
	// process, so that it can be stored with what is to be done for the identity later. It
	// is empty for an identity that rests on none of these.
	Basis string
	// By says what the identity rests on, where rules do not tell: tree.BySecret,
	// tree.ByAccount or tree.ByOperator. It is empty for everybody else.
	By string
}

// Author returns who makes what the identity writes.
func (id Identity) Author() tree.Author {
	uid := id.UID()
	switch {
	case uid != "" || id.By == "" && !id.Admin && !id.Auth.IsNull():
		return tree.NewAuthor(tree.ByUID, uid)
	case id.By != "":
		return tree.Author{By: id.By}
	case id.Admin:
		return tree.Author{By: tree.BySecret}
	}
	return tree.Author{By: tree.ByNobody}
}

// UID returns what rules see as auth.uid, if that is a text.
func (id Identity) UID() string {
	if uid := id.Auth.Child("uid"); uid.Leaf().Kind() == tree.String {
		return uid.Leaf().Text()
	}
	return ""
}

// As returns the identity that id has when it asks as somebody else: what auth
// says and no more, for as long as id is good.
func (id Identity) As(auth tree.Node) Identity {
	return Identity{Auth: auth, Debug: id.Debug, Simulate: id.Simulate, Expires: id.Expires, Basis: id.Basis}
}

// A Database is what a credential is for.
type Database struct {
	Name    string
	Secrets []string // the app secrets; empty ones do not count
	// Accounts are the keys of service accounts.
	Accounts []Account
}

// Options are what a Verifier needs to know. The zero value is right for a
// server without issuers.
type Options struct {
	Now     func() time.Time // time.Now if nil
	Issuers []Issuer
	// Transport is how the keys of issuers are fetched; http.DefaultTransport if
	// nil.
	Transport http.RoundTripper
	Logger    *slog.Logger // discards if nil
	// AccessKey signs access tokens; see the function AccessKey. Without it one is
	// drawn, and no access token, and no Basis, outlives the Verifier.
	AccessKey []byte
}

// A Verifier turns credentials into identities. Many goroutines may use it.
type Verifier struct {
	now      func() time.Time
	issuers  map[string]*issuer // by the claim iss
	basisKey []byte             // makes a Basis useless to whoever sees one
	failures failures

	fingerprints *fingerprints
	proofs       proofs

	accessKey  []byte
	assertions assertions
}

// New returns a verifier. It does not fetch any keys yet: an issuer may come up
// later than the server. Keys that are in the options or in a file it reads.
func New(opts Options) (*Verifier, error) {
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	if opts.Transport == nil {
		opts.Transport = http.DefaultTransport
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{now: opts.Now, issuers: map[string]*issuer{}, accessKey: opts.AccessKey}
	if len(v.accessKey) == 0 {
		v.accessKey = make([]byte, sha256.Size)
		if _, err := rand.Read(v.accessKey); err != nil {
			return nil, fmt.Errorf("draw a key: %w", err)
		}
	}
	var err error
	if v.fingerprints, err = newFingerprints(); err != nil {
		return nil, err
	}
	if v.basisKey, err = hkdf.Key(sha256.New, v.accessKey, nil, "livetree basis of identities 1", sha256.Size); err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	for _, config := range opts.Issuers {
		if v.issuers[config.URL] != nil {
			return nil, fmt.Errorf("the issuer %q is given twice", config.URL)
		}
		i, err := newIssuer(config, opts)
		if err != nil {
			return nil, fmt.Errorf("issuer %q: %w", withoutPassword(config.URL), err)
		}
		v.issuers[config.URL] = i
	}
	return v, nil
}

// maxCredentialBytes is the longest credential that is looked at. Tokens of
// identity providers are one or two KiB; the legacy generators stopped at one.
const maxCredentialBytes = 8 << 10

// Verify returns the identity that a credential gives in a database. No
// credential is nobody.
//
// An unknown credential is a fault.Unauthenticated error; its cause, which is
// for the log, says what is wrong. If the keys of a token's issuer were never
// fetched and cannot be, the error is a fault.Unavailable one: who comes is not
// known. A fetch takes at most fetchTimeout; ctx ends the waiting for one that
// another request began, and a Queue may be in it. How long Verify takes tells nothing about the secrets.
//
// A credential that was accepted is remembered, and is accepted again for as long
// as it would be by verifying it anew.
func (v *Verifier) Verify(ctx context.Context, credential string, database Database) (Identity, error) {
	if credential == "" {
		return Identity{}, nil
	}
	found, err := v.proof(ctx, credential, database)
	if err != nil {
		if !errors.As(err, new(queueError)) { // nothing was found wrong with it
			v.failures.count(err)
		}
		return Identity{}, refusal(err)
	}
	return found.identity, nil
}

// proof is Verify with errors that say what is wrong. It remembers what it finds.
func (v *Verifier) proof(ctx context.Context, credential string, database Database) (*proof, error) {
	if len(credential) > maxCredentialBytes {
		return nil, errTooLong
	}
	f := v.fingerprints.of(credential, database)
	if known := v.proofs.find(f); known != nil && known.stands(v.now(), database) {
		return known, nil
	}
	found, err := v.prove(ctx, credential, database)
	if err != nil {
		return nil, err
	}
	v.proofs.add(f, found)
	return found, nil
}

// prove finds out what a credential proves, from nothing but itself.
func (v *Verifier) prove(ctx context.Context, credential string, database Database) (*proof, error) {
	if secret, ok := findSecret(credential, database.Secrets); ok {
		return &proof{identity: Identity{Admin: true, Operator: true, Basis: v.secretBasis(secret), By: tree.BySecret}}, nil
	}
	if IsAccessToken(credential) {
		return v.accessProof(credential, database)
	}
	t, err := parseToken(credential)
	if err != nil {
		return nil, err
	}
	if t.algorithm == hs256 {
		return v.legacyProof(t, database)
	}
	return v.issuedProof(ctx, t, database)
}

// Holds reports whether an identity that Verify gave is still good in the
// database: it has not expired, and the secret, or the key of an account, that it
// rests on is still one. Between two calls only time and a change of those can
// alter the answer.
func (v *Verifier) Holds(id Identity, database Database) bool {
	if v.Expired(id) {
		return false
	}
	if id.Basis == "" {
		return true
	}
	for _, secret := range database.Secrets {
		if secret != "" && id.Basis == v.secretBasis(secret) {
			return true
		}
	}
	for _, account := range database.Accounts {
		if id.Basis == v.accountBasis(account.KeyID) {
			return true
		}
	}
	for url := range v.issuers {
		if id.Basis == v.issuerBasis(url) {
			return true
		}
	}
	return false
}

// Expired reports whether the time of an identity is over, by the clock that
// credentials are verified by.
func (v *Verifier) Expired(id Identity) bool {
	return !id.Expires.IsZero() && !v.now().Before(id.Expires)
}

func (v *Verifier) secretBasis(secret string) string { return v.basis("secret ", secret) }
func (v *Verifier) accountBasis(keyID string) string { return v.basis("account ", keyID) }
func (v *Verifier) issuerBasis(url string) string    { return v.basis("issuer ", url) }

func (v *Verifier) basis(kind, text string) string {
	mac := hmac.New(sha256.New, v.basisKey)
	mac.Write([]byte(kind))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// Why a credential is refused. The texts are for the log, so they are about what
// is wrong and never show what was sent.
var (
	errTooLong   = errors.New("the credential is too long")
	errNoToken   = errors.New("neither an app secret of the database nor a token")
	errHeader    = errors.New("the token has a header that is not accepted")
	errAlgorithm = errors.New("the token names an algorithm that is not accepted")
	errClaims    = errors.New("the claims of the token are not a JSON object with each key once")
	errSignature = errors.New("the signature of the token does not match")
	errVersion   = errors.New("the claim v is not 0")
	errUID       = errors.New("the token has no valid uid")
	errIssuer    = errors.New("the token is from an issuer that is not configured")
	errAudience  = errors.New("the token is for another audience")
	errNoExpiry  = errors.New("the token of an issuer has no expiry")
	errKeyID     = errors.New("the token is signed with a key that its issuer does not list")
	errTooSoon   = errors.New("the token is not valid yet")
	errExpired   = errors.New("the token has expired")
	errNoKeys    = errors.New("the keys of the token's issuer could not be fetched yet")
)

// refusal gives an error its meaning for clients. That of a context stays as it
// is.
func refusal(cause error) error {
	var full queueError
	switch {
	case errors.As(cause, &full):
		return full.error
	case errors.Is(cause, errExpired):
		return ErrExpired
	case errors.Is(cause, errNoKeys):
		return fault.Wrap(fault.Unavailable, cause, "the issuer of the auth token cannot be reached")
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return cause
	default:
		return fault.Wrap(fault.Unauthenticated, cause, "Could not parse auth token.")
	}
}

// ErrExpired is the error of Verify for a credential that was good once. It is also why a
// client loses a login whose time is over.
var ErrExpired = fault.Wrap(fault.Unauthenticated, errExpired, "Auth token is expired")

// findSecret returns the secret that a credential is. It looks at all of them,
// as hashes and in constant time (CouchDB's CVE-2010-0009 is what happens else).
func findSecret(credential string, secrets []string) (string, bool) {
	given := sha256.Sum256([]byte(credential))
	found := -1
	for i, secret := range secrets {
		if secret == "" {
			continue
		}
		want := sha256.Sum256([]byte(secret))
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(given[:], want[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return secrets[found], true
}
