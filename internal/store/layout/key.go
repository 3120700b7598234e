package layout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// An ID numbers a database within a store.
type ID uint32

// serialBits is how many bits of a number count databases: the rest is the shard in a cluster, 0 outside of one.
const serialBits = 24

// Serial returns a number without its shard. Databases that are made later have higher ones, and no two have the same.
func (id ID) Serial() ID { return id & (1<<serialBits - 1) }

// The first byte of a key in Pebble says what the key is for.
const (
	SpaceMeta     byte = 0x01 // format version; database name to ID
	SpaceData     byte = 0x02 // chunks, leaves, and priorities of split nodes
	SpaceIndex    byte = 0x03 // index rows
	SpaceSettings byte = 0x04 // rules, secrets, index definitions, sequence
	SpaceLog      byte = 0x05 // what each commit did
	SpaceRecord   byte = 0x06 // all that a commit did, if the log leaves something out
)

// The bytes that can follow an encoded path or begin a component. Their order
// is the order of the store: a node, its priority, its children (integers
// before other keys), the end of its subtree.
const (
	PriorityMark byte = 0x01 // the node's priority instead of the node
	integerTag   byte = 0x10 // 0C..0F negative and 11..14 other integers: 10 ± the number of bytes
	firstText    byte = 0x20 // the smallest byte of a key
	lastText     byte = 0xF4 // the largest byte of a key, also after tree.UTF16Rank
	spellingMark byte = 0xFF // follows an integer: it is not spelled the plain way
	SubtreeMark  byte = 0xFF // follows a path: greater than all that the subtree holds

	textEnd     byte = 0x00 // ends a key that is no integer; smaller than its bytes
	firstRanked byte = 0xEE // from here on tree.UTF16Rank moves bytes

	spellingBytes = 4 // spellingMark, extra length in two bytes, sign
	minusSpelled  = 0x00
	plainSpelled  = 0x01
)

// ErrMalformedKey is what every decoder of this file wraps: the bytes were not
// written by its encoder, so the store is damaged.
var ErrMalformedKey = errors.New("malformed key")

// RootBytes is the length of the key of a root: its space and its database.
const RootBytes = 1 + 4

// DataPrefix returns the key of the root of database id, with which all its
// data keys begin.
func DataPrefix(id ID) []byte {
	return AppendSpace(nil, SpaceData, id)
}

// DataKey appends the key of the node at p to dst.
func DataKey(dst []byte, id ID, p tree.Path) []byte {
	return appendPath(AppendSpace(dst, SpaceData, id), p)
}

// LogKey appends the key of what commit seq did to dst.
func LogKey(dst []byte, id ID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendSpace(dst, SpaceLog, id), seq)
}

func AppendSpace(dst []byte, space byte, id ID) []byte {
	return binary.BigEndian.AppendUint32(append(dst, space), uint32(id))
}

// SubtreeEnd appends to dst the end, exclusive, of the subtree whose node has
// the data key key.
//
// [K, K·FF) is exactly the subtree of K. The keys in it are K itself and those
// that continue K with a byte below FF. Such a byte is PriorityMark or begins a
// component, and because components delimit themselves, what stands before it
// reads as the path of K and nothing else. Below K every key does continue so,
// as no component begins with FF. The one case of K continued by FF belongs to
// a stranger: if K ends in the integer 7, its sibling 007 is K·FF·0002·01, and
// it lies behind the end, as it should.
func SubtreeEnd(dst, key []byte) []byte {
	return append(append(dst, key...), SubtreeMark)
}

// appendPath appends the components of p to dst. Encoded paths compare as
// their keys do by tree.CompareKeys, one after the other, ancestors first.
func appendPath(dst []byte, p tree.Path) []byte {
	for key := range p.Keys() {
		dst = AppendComponent(dst, key)
	}
	return dst
}

// DecodePath reads what appendPath wrote, all of b. It accepts nothing else:
// encoding its result gives b again.
func DecodePath(b []byte) (tree.Path, error) {
	var p tree.Path
	for depth := 0; len(b) > 0; depth++ {
		if depth == tree.MaxDepth {
			return tree.Path{}, fmt.Errorf("%w: %w", ErrMalformedKey, tree.ErrTooDeep)
		}
		key, rest, err := CutComponent(b)
		if err != nil {
			return tree.Path{}, err
		}
		p, b = p.Child(key), rest
	}
	return p, nil
}

// AppendComponent appends the encoding of key, which must be valid, to dst. No
// component is a prefix of another, but that an integer in plain spelling (7)
// is one of the same integer in others (007), where spellingMark follows.
func AppendComponent(dst []byte, key string) []byte {
	if v, ok := tree.IntegerKey(key); ok {
		dst = AppendInteger(dst, v)
		return appendSpelling(dst, key, v)
	}
	start := len(dst)
	dst = append(dst, key...)
	for i, c := range dst[start:] {
		if c >= firstRanked { // rare: most keys are only read here
			dst[start+i] = tree.UTF16Rank(c)
		}
	}
	return append(dst, textEnd)
}

// AppendInteger appends v in as few bytes as hold it, behind a tag that sorts
// first by sign and then by size.
func AppendInteger(dst []byte, v int32) []byte {
	size := integerSize(v)
	if v < 0 {
		dst = append(dst, integerTag-byte(size))
	} else {
		dst = append(dst, integerTag+byte(size))
	}
	// The format asks for -v-1 complemented if v is negative: that is v itself
	// in two's complement.
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// integerSize returns how many bytes, 1 to 4, hold v or, if it is negative,
// -v-1.
func integerSize(v int32) int {
	magnitude := uint32(v ^ v>>31)
	return max(1, (bits.Len32(magnitude)+7)/8)
}

// appendSpelling appends how key differs from the plain spelling of its value
// v: nothing if it does not, else how many characters longer it is and whether
// it has a minus sign, which is news only for zero. Shorter spellings sort
// first, and -0 before 00, as tree.CompareKeys has it.
func appendSpelling(dst []byte, key string, v int32) []byte {
	var plain [11]byte
	extra := len(key) - len(strconv.AppendInt(plain[:0], int64(v), 10))
	if extra == 0 {
		return dst
	}
	dst = append(dst, spellingMark)
	dst = binary.BigEndian.AppendUint16(dst, uint16(extra))
	if key[0] == '-' {
		return append(dst, minusSpelled)
	}
	return append(dst, plainSpelled)
}

// ComponentLen returns the length in bytes of the component with which b
// begins, or -1 if b begins with none: it is empty, cut short, or continues
// with a mark. It allocates nothing and does not look inside the component,
// so on bytes that appendPath did not write its answer need not be -1.
func ComponentLen(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	if b[0] >= firstText {
		if b[0] > lastText {
			return -1
		}
		if end := bytes.IndexByte(b, textEnd); end >= 0 {
			return end + 1
		}
		return -1
	}
	n := 1 + max(int(b[0])-int(integerTag), int(integerTag)-int(b[0]))
	if n < 2 || n > 5 || n > len(b) {
		return -1
	}
	if n == len(b) || b[n] != spellingMark {
		return n
	}
	if n += spellingBytes; n > len(b) {
		return -1
	}
	return n
}

// CutComponent decodes the component with which b begins and returns what
// follows it. It accepts only what AppendComponent writes for a valid key, so
// that no two keys in the store mean the same location.
func CutComponent(b []byte) (key string, rest []byte, err error) {
	n := ComponentLen(b)
	if n < 0 {
		return "", nil, fmt.Errorf("%w: no component in % x", ErrMalformedKey, b[:min(len(b), 16)])
	}
	if b[0] >= firstText {
		key, err = decodeText(b[:n-1])
	} else {
		key, err = decodeInteger(b[:n])
	}
	if err != nil {
		return "", nil, err
	}
	if err := tree.CheckKey(key); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrMalformedKey, err)
	}
	return key, b[n:], nil
}

// AppendKeyJSON appends the key of a component, all of b, as a JSON string.
func AppendKeyJSON(dst, b []byte) ([]byte, error) {
	if text := b[:len(b)-1]; isWord(text) { // as most keys are
		dst = append(dst, '"')
		dst = append(dst, text...)
		return append(dst, '"'), nil
	}
	key, _, err := CutComponent(b)
	return tree.AppendString(dst, key), err
}

// isWord reports whether b is made of letters, digits, - and _, and not of digits
// alone: then it is a valid key, no integer, and stored and printed as it is.
func isWord(b []byte) bool {
	var seen wordClass
	for _, c := range b {
		class := wordClasses[c]
		if class == 0 {
			return false
		}
		seen |= class
	}
	return seen&wordLetter != 0
}

// A wordClass is what a byte is in a word; 0 if it is in none.
type wordClass uint8

const (
	wordLetter wordClass = 1 << iota // no integer has one
	wordDigit                        // or a minus
)

var wordClasses = func() (table [256]wordClass) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
			table[c] = wordLetter
		case '0' <= c && c <= '9', c == '-':
			table[c] = wordDigit
		}
	}
	return table
}()

// decodeText decodes the component of a key that is no integer, without its
// textEnd. Whether the key is valid is left to the caller.
func decodeText(b []byte) (string, error) {
	key := string(b)
	if slices.ContainsFunc(b, func(c byte) bool { return c >= firstRanked }) {
		text := []byte(key)
		for i, c := range text {
			text[i] = fromUTF16Rank(c)
		}
		key = string(text)
	}
	if _, ok := tree.IntegerKey(key); ok {
		return "", fmt.Errorf("%w: the integer %s is written as text", ErrMalformedKey, key)
	}
	return key, nil
}

// decodeInteger decodes the component b, all of it, of an integer key.
func decodeInteger(b []byte) (string, error) {
	size, v := int(b[0])-int(integerTag), int32(0)
	negative := size < 0
	if negative {
		size, v = -size, -1 // the bytes in front of those written are all ones
	}
	for _, c := range b[1 : 1+size] {
		v = v<<8 | int32(c)
	}
	if v < 0 != negative || integerSize(v) != size {
		return "", fmt.Errorf("%w: no 32-bit integer in its shortest form: % x", ErrMalformedKey, b)
	}
	plain := strconv.Itoa(int(v))
	if len(b) == 1+size {
		return plain, nil
	}
	return decodeSpelling(b[1+size:], plain, v)
}

// decodeSpelling returns the key whose value v is plainly spelled plain, and
// whose own spelling b describes, from its spellingMark on.
func decodeSpelling(b []byte, plain string, v int32) (string, error) {
	extra, sign := int(binary.BigEndian.Uint16(b[1:])), b[3]
	minus := sign == minusSpelled
	if extra == 0 || sign > plainSpelled || v != 0 && minus != (v < 0) {
		return "", fmt.Errorf("%w: no spelling of %s: % x", ErrMalformedKey, plain, b)
	}
	digits := strings.TrimPrefix(plain, "-")
	zeros := len(plain) + extra - len(digits)
	if minus {
		return "-" + strings.Repeat("0", zeros-1) + digits, nil
	}
	return strings.Repeat("0", zeros) + digits, nil
}

// fromUTF16Rank undoes tree.UTF16Rank. Bytes above lastText, which it never gives,
// stay as they are; no UTF-8 holds them.
func fromUTF16Rank(c byte) byte {
	switch {
	case c < firstRanked || c > lastText:
		return c
	case c < 0xF3:
		return c + 2
	default:
		return c - 5
	}
}

// ChildEnd returns where the key of the child ends to which a row below a node
// belongs.
func ChildEnd(key []byte, prefix int) (int, error) {
	n := ComponentLen(key[prefix:])
	if n < 0 {
		return 0, fmt.Errorf("%w: row %x", ErrMalformedKey, key)
	}
	return prefix + n, nil
}

// ChildIndex returns the array index that the key of the child is.
func ChildIndex(key []byte, prefix int) (int32, bool) {
	b := key[prefix:]
	if b[0] >= firstText { // as most keys do
		return 0, false
	}
	n := ComponentLen(b)
	if n < 0 || b[0] <= integerTag {
		return 0, false
	}
	size, v := int(b[0]-integerTag), int32(0)
	if n != 1+size { // it is not spelled as an index is
		return 0, false
	}
	for _, c := range b[1:n] {
		v = v<<8 | int32(c)
	}
	if v < 0 || integerSize(v) != size {
		return 0, false
	}
	return v, true
}

// Belongs reports whether a row is at or below the node with a key.
func Belongs(row, node []byte) bool {
	return bytes.HasPrefix(row, node) && (len(row) == len(node) || row[len(node)] != SubtreeMark)
}
