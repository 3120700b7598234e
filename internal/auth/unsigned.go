package auth

import "strings"

// unsigned is the algorithm that tokens without a signature name.
const unsigned = "none"

// Unsigned returns the identity that a token without a signature claims, as test tools
// make them for a server that runs for trying out. Nothing about it is proven, and its
// times do not count: the tools set them to 1970. No other server may ask for it.
func Unsigned(credential string) (Identity, error) {
	text, ok := strings.CutSuffix(credential, ".")
	header, payload, two := strings.Cut(text, ".")
	if len(credential) > maxCredentialBytes || !ok || !two {
		return Identity{}, refusal(errNoToken)
	}
	id, err := claimed(header, payload)
	if err != nil {
		return Identity{}, refusal(err)
	}
	return id, nil
}

// claimed returns the identity in a token without a signature.
func claimed(header, payload string) (Identity, error) {
	head, err := decodeSegment(header)
	if err != nil {
		return Identity{}, err
	}
	fields, _, err := parseClaims(head)
	if err != nil {
		return Identity{}, errHeader
	}
	if algorithm, _, err := fields.text("alg"); err != nil || algorithm != unsigned {
		return Identity{}, errAlgorithm
	}
	t := &token{}
	if t.payload, err = decodeSegment(payload); err != nil {
		return Identity{}, err
	}
	if t.claims, t.node, err = parseClaims(t.payload); err != nil {
		return Identity{}, err
	}
	auth, err := issuedAuth(t)
	return Identity{Auth: auth}, err
}

// IsUnsigned reports whether a credential has the form of a token without a signature.
func IsUnsigned(credential string) bool {
	return strings.HasSuffix(credential, ".") && strings.Count(credential, ".") == 2
}
