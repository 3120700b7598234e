package leave

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

const (
	identityVersion = 0x01
	adminFlag       = 0x01
)

// EncodeIdentity returns the identity of a connection as it is stored beside the rows: what rules
// see of it, and whether they apply. There is no credential in it, and it does not expire:
// it was good when the client was last heard.
func EncodeIdentity(who auth.Identity) string {
	flags := byte(0)
	if who.Admin {
		flags = adminFlag
	}
	return string(tree.AppendJSON([]byte{identityVersion, flags}, who.Auth, tree.Export))
}

// DecodeIdentity reads an identity. An error wraps ErrRow.
func DecodeIdentity(encoded string) (auth.Identity, error) {
	if len(encoded) < 2 || encoded[0] != identityVersion || encoded[1]&^adminFlag != 0 {
		return auth.Identity{}, fmt.Errorf("%w: not an identity of this version", ErrRow)
	}
	claims, err := tree.DecodeClaims([]byte(encoded[2:]))
	who := auth.Identity{Admin: encoded[1]&adminFlag != 0, Auth: claims}
	if err == nil && EncodeIdentity(who) != encoded {
		err = errors.New("not in canonical form")
	}
	if err != nil {
		return auth.Identity{}, fmt.Errorf("%w: an identity: %w", ErrRow, err)
	}
	return who, nil
}
