package layout

import (
	"encoding/binary"
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

// DescribeKey says for people what row has a key, as far as the key tells.
// Databases have their numbers here: to look up a name is to read.
func DescribeKey(key []byte) string {
	if len(key) < RootBytes || key[0] == SpaceMeta {
		return "metadata"
	}
	database := binary.BigEndian.Uint32(key[1:])
	switch rest := key[RootBytes:]; key[0] {
	case SpaceData:
		return fmt.Sprintf("database %d %s", database, PathOf(key))
	case SpaceIndex:
		if IsDueKey(key) {
			return fmt.Sprintf("what expires in database %d", database)
		}
		return fmt.Sprintf("the indexes of database %d %s", database, PathOf(key))
	case SpaceSettings:
		if IsHookKey(key) {
			return fmt.Sprintf("what the hooks of database %d deliver", database)
		}
		if IsLeftKey(key) {
			return fmt.Sprintf("what connections have left to be written in database %d", database)
		}
		return fmt.Sprintf("the settings of database %d", database)
	case SpaceRecord:
		return fmt.Sprintf("the records of database %d", database)
	default:
		if len(rest) != 8 {
			return fmt.Sprintf("the change log of database %d", database)
		}
		return fmt.Sprintf("the change log of database %d at %d", database, binary.BigEndian.Uint64(rest))
	}
}

// PathOf returns the path in the key of a row of data or of an index, as far as it
// can be understood.
func PathOf(key []byte) (p tree.Path) {
	for rest := key[min(len(key), RootBytes):]; ; {
		n := ComponentLen(rest)
		if n < 0 {
			return p
		}
		name, _, err := CutComponent(rest[:n])
		if err != nil {
			return p
		}
		p, rest = p.Child(name), rest[n:]
	}
}

// CutDataKey takes the key of a data row apart.
func CutDataKey(key []byte) (p tree.Path, isPriority bool, err error) {
	rest := key[RootBytes:]
	if n := len(rest); n > 0 && rest[n-1] == PriorityMark {
		if p, err := DecodePath(rest[:n-1]); err == nil {
			return p, true, nil
		}
	}
	p, err = DecodePath(rest)
	return p, false, err
}
