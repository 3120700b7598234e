package leave

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// The versions of identities. A basedVersion has the basis of the identity.
const (
	identityVersion = 0x01
	basedVersion    = 0x02
	adminFlag       = 0x01
)

// EncodeIdentity returns the identity of a connection as it is stored beside the rows: what rules
// see of it, whether they apply, and its basis, so that it ends with the secret or key that it
// rests on. There is no credential in it, and it does not expire: it was good when the
// client was last heard.
func EncodeIdentity(who auth.Identity) string {
	dst := []byte{identityVersion, 0}
	if who.Admin {
		dst[1] = adminFlag
	}
	if who.Basis != "" {
		dst[0] = basedVersion
		dst = appendText(dst, who.Basis)
	}
	return string(tree.AppendJSON(dst, who.Auth, tree.Export))
}

// DecodeIdentity reads an identity. An error wraps ErrRow.
func DecodeIdentity(encoded string) (auth.Identity, error) {
	if len(encoded) < 2 || encoded[0] != identityVersion && encoded[0] != basedVersion || encoded[1]&^adminFlag != 0 {
		return auth.Identity{}, fmt.Errorf("%w: not an identity of this version", ErrRow)
	}
	c := cursor{rest: encoded[2:]}
	who := auth.Identity{Admin: encoded[1]&adminFlag != 0}
	if encoded[0] == basedVersion {
		who.Basis = c.text()
	}
	if c.err != nil {
		return auth.Identity{}, c.err
	}
	claims, err := tree.DecodeClaims([]byte(c.rest))
	who.Auth = claims
	if err == nil && EncodeIdentity(who) != encoded {
		err = errors.New("not in canonical form")
	}
	if err != nil {
		return auth.Identity{}, fmt.Errorf("%w: an identity: %w", ErrRow, err)
	}
	return who, nil
}
