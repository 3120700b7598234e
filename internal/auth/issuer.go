package auth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// An Issuer is an identity provider whose tokens are accepted. They make nobody
// an administrator, whatever they claim.
type Issuer struct {
	// URL is what its tokens carry as iss, to the letter.
	URL string
	// Audiences are for whom its tokens must be: one of these must be in aud. There
	// must be at least one, or every application of the issuer could come in. The
	// text {database} in it stands for the name of the database.
	Audiences []string
	// JWKS is where its keys are, an https: or file: URL. If it is empty, the
	// discovery document below URL tells. Plain http: is for loopback only.
	JWKS string
	// Keys, if set, is the text of its key set. Then nothing is fetched.
	Keys []byte
}

const databasePlaceholder = "{database}"

// An issuer is an Issuer at work.
type issuer struct {
	url       string
	audiences []string
	keys      *keySet
}

func newIssuer(config Issuer, opts Options) (*issuer, error) {
	if config.URL == "" {
		return nil, errors.New("it has no URL")
	}
	if len(config.Audiences) == 0 || slices.Contains(config.Audiences, "") {
		return nil, errors.New("it needs an audience, or the tokens of every application of the issuer would do")
	}
	keys, err := newKeySet(config, opts)
	if err != nil {
		return nil, err
	}
	return &issuer{url: config.URL, audiences: slices.Clone(config.Audiences), keys: keys}, nil
}

// issuedProof returns what the token of an issuer proves. What is wrong without a
// key is found first, so that such tokens cause no fetch.
func (v *Verifier) issuedProof(ctx context.Context, t *token, database Database) (*proof, error) {
	url, _, err := t.claims.text("iss")
	if err != nil {
		return nil, err
	}
	issuer := v.issuers[url]
	if issuer == nil {
		return nil, errIssuer
	}
	if !issuer.isFor(t.claims["aud"], database.Name) {
		return nil, errAudience
	}
	generation, err := issuer.keys.verify(ctx, t)
	if err != nil {
		return nil, err
	}
	id := Identity{Basis: v.issuerBasis(url)}
	if id.Auth, err = issuedAuth(t); err != nil {
		return nil, err
	}
	valid, err := t.claims.period(v.now())
	if err != nil {
		return nil, err
	}
	if valid.expires.IsZero() {
		return nil, errNoExpiry
	}
	id.Expires = valid.expires
	return &proof{identity: id, from: valid.from, issuer: issuer, generation: generation}, nil
}

// isFor reports whether the claim aud, a string or a list of strings, holds an
// audience that stands for the database.
func (i *issuer) isFor(aud json.RawMessage, database string) bool {
	var list []string
	var one string
	if json.Unmarshal(aud, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(aud, &list) != nil {
		return false
	}
	for _, audience := range i.audiences {
		if database == "" && strings.Contains(audience, databasePlaceholder) {
			continue
		}
		if slices.Contains(list, strings.ReplaceAll(audience, databasePlaceholder, database)) {
			return true
		}
	}
	return false
}

// issuedAuth returns the variable auth: uid, token and, from Firebase, provider.
func issuedAuth(t *token) (tree.Node, error) {
	subject, _, err := t.claims.text("sub")
	if err != nil || !validUID(subject) {
		return tree.Node{}, errUID
	}
	text := append([]byte(`{"uid":`), t.claims["sub"]...)
	text = append(append(text, `,"token":`...), t.payload...)
	provider := t.node.Child("firebase").Child("sign_in_provider").Leaf()
	if provider.Kind() == tree.String {
		text = tree.AppendLeaf(append(text, `,"provider":`...), provider)
	}
	auth, err := tree.DecodeClaims(append(text, '}'))
	if err != nil {
		return tree.Node{}, errClaims // it is one level deeper than the claims
	}
	return auth, nil
}
