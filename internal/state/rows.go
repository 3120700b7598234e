package state

import (
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/store"
)

// rowList are the rows of settings, by their names in order. Every database has one, and there may be very many: a map would take some
// times as much.
type rowList []settingRow

// A settingRow is a setting as it is stored.
type settingRow struct{ name, value string }

// knownNames are the names that most databases have, so that those share them.
var knownNames = []string{SettingSecrets, SettingAccounts, SettingRules, SettingHistory, SettingIndexes, SettingHooks, SettingHookSecrets}

// newRows returns rows as they are stored, as a list.
func newRows(rows store.Settings) rowList {
	list := make(rowList, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, settingRow{sharedName(name), string(rows[name])})
	}
	return list
}

func sharedName(name string) string {
	if i := slices.Index(knownNames, name); i >= 0 {
		return knownNames[i]
	}
	return strings.Clone(name)
}

// find returns where a row is, or would be.
func (l rowList) find(name string) (at int, ok bool) {
	return slices.BinarySearchFunc(l, name, func(r settingRow, name string) int { return strings.Compare(r.name, name) })
}

// get returns the value of a row, and whether there is one.
func (l rowList) get(name string) (value string, ok bool) {
	at, ok := l.find(name)
	if !ok {
		return "", false
	}
	return l[at].value, true
}

// value returns the value of a row, nothing if there is none.
func (l rowList) value(name string) string {
	value, _ := l.get(name)
	return value
}

// option is value for an option. Every request asks for one: so the list, which is short, is gone through, and no name is put together.
func (l rowList) option(name string) string {
	for _, r := range l {
		if end, ok := strings.CutPrefix(r.name, OptionPrefix); ok && end == name {
			return r.value
		}
	}
	return ""
}

// bytes is value for decoders: nil if there is no row.
func (l rowList) bytes(name string) []byte {
	value, ok := l.get(name)
	if !ok {
		return nil
	}
	return []byte(value)
}

// with returns the rows after a change, in which nil stands for no row.
func (l rowList) with(changed store.Settings) rowList {
	after := slices.Clone(l)
	for name, value := range changed {
		at, ok := after.find(name)
		switch {
		case value == nil && ok:
			after = slices.Delete(after, at, at+1)
		case value == nil:
		case ok:
			after[at].value = string(value)
		default:
			after = slices.Insert(after, at, settingRow{sharedName(name), string(value)})
		}
	}
	return slices.Clone(after) // no larger than it must be
}
