package layout

import "encoding/binary"

// The rows of the hooks of a database lie after what connections have left: no name of a
// connection begins with hookMark. Each hook has a row that says how far it is, and after it the
// notices that are to be delivered, by the positions of their commits.
const (
	hookMark     byte = 0xFF
	hookProgress byte = 0x00
	hookNotice   byte = 0x01
)

// hookKey returns what begins the keys of the rows of a hook.
func hookKey(id ID, hook uint32) []byte {
	key := append(AppendSpace(nil, SpaceSettings, id), leftMark, hookMark)
	return binary.BigEndian.AppendUint32(key, hook)
}

// HookProgressKey returns the key of the row that says how far a hook is.
func HookProgressKey(id ID, hook uint32) []byte { return append(hookKey(id, hook), hookProgress) }

// NoticeKey returns the key of the notice of a commit for a hook.
func NoticeKey(id ID, hook uint32, position uint64) []byte {
	return binary.BigEndian.AppendUint64(append(hookKey(id, hook), hookNotice), position)
}

// NoticeRange returns the range of the notices of a hook whose positions are from first to last.
func NoticeRange(id ID, hook uint32, first, last uint64) (from, to []byte) {
	return NoticeKey(id, hook, first), append(NoticeKey(id, hook, last), 0)
}

// NoticePosition returns the position in the key of a notice.
func NoticePosition(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// HookRange returns the range of all rows of a hook.
func HookRange(id ID, hook uint32) (from, to []byte) {
	from = hookKey(id, hook)
	return from, append(from[:len(from):len(from)], hookNotice+1)
}

// HooksRange returns the range of the rows of all hooks of a database.
func HooksRange(id ID) (from, to []byte) {
	return append(AppendSpace(nil, SpaceSettings, id), leftMark, hookMark), AppendSpace(nil, SpaceSettings, id+1)
}

// IsHookKey reports whether a key is in the range of the rows of hooks.
func IsHookKey(key []byte) bool {
	return IsLeftKey(key) && len(key) > RootBytes+1 && key[RootBytes+1] == hookMark
}
