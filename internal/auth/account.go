package auth

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// This file is about service accounts: programs that hold a private key whose
// public half is a setting of one database. With it they sign assertions, and
// exchange those for access tokens (RFC 7523), as the Admin SDKs do. An access
// token makes its bearer the operator of that database and of no other, for an
// hour, or until the key is revoked.

// An Account is one key of a service account. An account with two has one that
// is about to replace the other.
type Account struct {
	Name  string
	KeyID string // AccountKeyID of Key
	Key   *rsa.PublicKey
	// TokenURI is where the key file sends its holder for access tokens, and so
	// the audience of his assertions.
	TokenURI string
	Created  time.Time
}

// accountDomain ends the e-mail addresses of accounts. Nobody can have mail there.
const accountDomain = ".livetree.internal"

// accountNames leaves no name that could be the id of a key.
var accountNames = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,29}$`)

// CheckAccountName reports why an account cannot have a name, or nil.
func CheckAccountName(name string) error {
	if accountNames.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"invalid account name %.60q: it must be 1 to 30 lower-case letters, digits and hyphens, and not begin with a hyphen", name)
}

// AccountEmail returns how an account is called in key files and assertions. It
// tells the account and its database.
func AccountEmail(name, database string) string { return name + "@" + database + accountDomain }

// AccountKeyID returns the id of a key, by which assertions name it.
func AccountKeyID(key *rsa.PublicKey) (string, error) {
	text, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:keyIDBytes]), nil
}

// ParseAccountKey reads a public key in PEM.
func ParseAccountKey(text string) (*rsa.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, fault.New(fault.Invalid, "the public key is not one PEM block PUBLIC KEY")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the public key cannot be read")
	}
	key, ok := public.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minRSABits || key.N.BitLen() > maxRSABits {
		return nil, fault.New(fault.Invalid, "the public key must be an RSA key of %d to %d bits", minRSABits, maxRSABits)
	}
	return key, nil
}

// account returns the account of a database that has a key.
func (d Database) account(keyID string) (Account, bool) {
	for _, a := range d.Accounts {
		if a.KeyID == keyID {
			return a, true
		}
	}
	return Account{}, false
}

// Why an assertion is refused, or an access token, beside what holds of every
// token.
var (
	errAccount     = errors.New("the key of the assertion is not known: its account was revoked, or is of another server")
	errRevoked     = errors.New("the access token is of another database, or its account was revoked")
	errDelegation  = errors.New("the assertion asks on behalf of another user, which accounts cannot do")
	errTokenURI    = errors.New("the claim aud is neither the token_uri of the key file nor that of this server")
	errLifetime    = errors.New("the assertion needs the claims iat and exp, at most an hour apart")
	errReplayed    = errors.New("the assertion was used before: sign a new one; if programs that start together get this, set their clock right")
	errAssertions  = errors.New("too many assertions were signed with this key in the last hour: use an access token until it expires")
	errAccessToken = errors.New("the access token is malformed")

	errDatabaseAssertions = errors.New("too many assertions were signed with the keys of this database in the last hour: use an access token until it expires")
	errAllAssertions      = errors.New("too many assertions were signed with the keys of all databases in the last hour: try again later")
)

// maxAssertionLife is the most that may lie between iat and exp of an assertion.
const maxAssertionLife = time.Hour

// AssertedDatabase returns the database that an assertion is about. Nothing of
// it is verified yet. An error is a fault.Unauthenticated one.
func AssertedDatabase(assertion string) (string, error) {
	t, err := parseAssertion(assertion)
	if err != nil {
		return "", assertionRefusal(err)
	}
	issuer, _, err := t.claims.text("iss")
	if err != nil {
		return "", assertionRefusal(err)
	}
	_, host, _ := strings.Cut(issuer, "@")
	database, ok := strings.CutSuffix(host, accountDomain)
	if !ok {
		return "", assertionRefusal(errAccount)
	}
	return database, nil
}

func parseAssertion(text string) (*token, error) {
	if len(text) > maxCredentialBytes {
		return nil, errTooLong
	}
	t, err := parseToken(text)
	if err == nil && t.algorithm != rs256 {
		err = errAlgorithm
	}
	return t, err
}

// Grant returns an access token for an assertion that the holder of an account's
// key has signed. isHere reports whether an audience stands for this server;
// that which is in the account's key file always does.
//
// An assertion that is not accepted is a fault.Unauthenticated error whose text
// says why.
func (v *Verifier) Grant(assertion string, database Database, isHere func(audience string) bool) (string, error) {
	account, err := v.asserted(assertion, database, isHere)
	if err != nil {
		v.failures.count(err)
		return "", assertionRefusal(err)
	}
	return v.accessToken(account.KeyID, database.Name, v.now().Add(AccessLifetime))
}

// UnknownAccount returns the error of Grant for an account that is not there, for
// a caller who finds that not even its database is.
func UnknownAccount() error { return assertionRefusal(errAccount) }

// googleTokenURI is the audience of what the libraries for Python and Java sign,
// whatever the token_uri of the key file is. It is good here, too: the keys of
// accounts are known to this server alone, so such an assertion is of no use at the
// endpoint that it names, nor can one from there be meant for us.
const googleTokenURI = "https://oauth2.googleapis.com/token"

// asserted returns the account that signed an assertion. What an assertion says
// is looked at only when it is known who says it.
func (v *Verifier) asserted(text string, database Database, isHere func(string) bool) (Account, error) {
	t, err := parseAssertion(text)
	if err != nil {
		return Account{}, err
	}
	account, ok := database.account(t.keyID)
	if !ok {
		return Account{}, errAccount
	}
	if !(key{algorithm: rs256, public: account.Key}).verifies(t) {
		return Account{}, errSignature
	}
	email := AccountEmail(account.Name, database.Name)
	if issuer, _, err := t.claims.text("iss"); err != nil || issuer != email {
		return Account{}, errAccount
	}
	if subject, ok, err := t.claims.text("sub"); err != nil || ok && subject != email {
		return Account{}, errDelegation
	}
	audience, ok, err := t.claims.text("aud")
	if err != nil || !ok || audience != account.TokenURI && audience != googleTokenURI && !isHere(audience) {
		return Account{}, errTokenURI
	}
	now := v.now()
	issued, expires, err := t.claims.assertionPeriod(now)
	if err != nil {
		return Account{}, err
	}
	_, unique, err := t.claims.text("jti")
	if err != nil {
		return Account{}, err
	}
	used := assertion{signed: t.signed, keyID: account.KeyID, database: database.Name, unique: unique, issued: issued, expires: expires}
	return account, v.assertions.use(used, now)
}

// assertionPeriod is period for an assertion, which needs both ends.
func (c claims) assertionPeriod(now time.Time) (issued, expires time.Time, err error) {
	valid, err := c.period(now)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	issued, ok, err := c.moment("iat")
	if err != nil || !ok || valid.expires.IsZero() || valid.expires.Sub(issued) > maxAssertionLife || !issued.Before(valid.expires) {
		return time.Time{}, time.Time{}, errLifetime
	}
	return issued, valid.expires, nil
}

// assertionRefusal gives an error its meaning. Its text says what is wrong: the
// holder of a key has to be able to find out, and no cause shows what was sent.
func assertionRefusal(cause error) error {
	if errors.Is(cause, errAssertions) || errors.Is(cause, errDatabaseAssertions) || errors.Is(cause, errAllAssertions) {
		return fault.Wrap(fault.Unavailable, cause, "%v", cause)
	}
	return fault.Wrap(fault.Unauthenticated, cause, "%v", cause)
}

// AccessLifetime is how long an access token is good for. SDKs ask for the next
// one some minutes before.
const AccessLifetime = time.Hour

// An access token is accessPrefix and, in base64, when it expires, the id of its
// key, and a MAC over both and the name of the database.
const (
	accessPrefix = "lt1."
	keyIDBytes   = 20
	expiryBytes  = 8
	accessBytes  = expiryBytes + keyIDBytes + sha256.Size
)

// AccessKey derives the key for access tokens from a secret of the store, so that
// they outlive the process and nothing more need be kept.
func AccessKey(secret []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "livetree access tokens 1", sha256.Size)
}

// HideKey derives the key by which secrets are hashed where they must not be read, as
// AccessKey does for access tokens.
func HideKey(secret []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "livetree hidden secrets 1", sha256.Size)
}

// IsAccessToken reports whether a credential has the form of an access token.
// Such are for the header Authorization and for access_token alone.
func IsAccessToken(credential string) bool { return strings.HasPrefix(credential, accessPrefix) }

func (v *Verifier) accessToken(keyID, database string, expires time.Time) (string, error) {
	id, err := hex.DecodeString(keyID)
	if err != nil || len(id) != keyIDBytes {
		return "", fmt.Errorf("the account key has a malformed id")
	}
	text := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	text = append(text, id...)
	return accessPrefix + segments.EncodeToString(append(text, v.accessMAC(text, database)...)), nil
}

func (v *Verifier) accessMAC(text []byte, database string) []byte {
	mac := hmac.New(sha256.New, v.accessKey)
	mac.Write(text) // of fixed length, so that no two inputs run together
	mac.Write([]byte(database))
	return mac.Sum(nil)
}

// accessProof returns what an access token proves.
func (v *Verifier) accessProof(credential string, database Database) (*proof, error) {
	text, err := decodeSegment(strings.TrimPrefix(credential, accessPrefix))
	if err != nil || len(text) != accessBytes {
		return nil, errAccessToken
	}
	signed, mac := text[:expiryBytes+keyIDBytes], text[expiryBytes+keyIDBytes:]
	if !hmac.Equal(mac, v.accessMAC(signed, database.Name)) {
		return nil, errSignature
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(signed)), 0)
	if !v.now().Before(expires) {
		return nil, errExpired
	}
	keyID := hex.EncodeToString(signed[expiryBytes:])
	if _, ok := database.account(keyID); !ok {
		return nil, errRevoked
	}
	id := Identity{Admin: true, Operator: true, Expires: expires, Basis: v.accountBasis(keyID), By: tree.ByAccount}
	return &proof{identity: id, account: keyID}, nil
}
