package hook

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/livetree/livetree/internal/fault"
)

// MaxHooks is how many hooks a database may have.
const MaxHooks = 1000

// A Set is the hooks of a database at one commit. It does not change; nil has no hooks.
type Set struct {
	next     uint32 // number of the next hook
	hooks    []*Hook
	patterns *node
}

// A listRow is how a Set is stored, but for the secrets.
type listRow struct {
	Next  uint32    `json:"next"`
	Hooks []hookRow `json:"hooks"`
}

type hookRow struct {
	Number  uint32   `json:"number"`
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	URL     string   `json:"url"`
	Events  []string `json:"events"`
	Created int64    `json:"created"`
	Paused  string   `json:"paused,omitempty"`
}

// hiddenMark begins secrets that are hidden: see package transfer.
const hiddenMark = 0x00

// DecodeSet returns the hooks that two settings say there are, nil if there never was one. Secrets that are
// hidden are no secrets.
func DecodeSet(list, secrets []byte) (*Set, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var rows listRow
	if err := json.Unmarshal(list, &rows); err != nil {
		return nil, err
	}
	signedWith := map[string][]string{}
	if len(secrets) > 0 && secrets[0] != hiddenMark {
		if json.Unmarshal(secrets, &signedWith) != nil { // whose error would show a part of them
			return nil, errors.New("the secrets cannot be read")
		}
	}
	s := &Set{next: rows.Next}
	for _, row := range rows.Hooks {
		h, err := row.hook()
		if err != nil {
			return nil, err
		}
		h.Secrets = signedWith[strconv.FormatUint(uint64(h.Number), 10)]
		s.hooks = append(s.hooks, h)
	}
	s.patterns = grow(s.hooks)
	return s, nil
}

func (row hookRow) hook() (*Hook, error) {
	pattern, err := ParsePattern(row.Path)
	if err != nil {
		return nil, err
	}
	events, err := ParseEvents(row.Events)
	return &Hook{Number: row.Number, Name: row.Name, Pattern: pattern, URL: row.URL, Events: events, Created: row.Created, Paused: row.Paused}, err
}

// Encode returns the two settings; secrets are nil if there are none.
func (s *Set) Encode() (list, secrets []byte, err error) {
	rows := listRow{Next: s.next, Hooks: []hookRow{}}
	signedWith := map[string][]string{}
	for _, h := range s.hooks {
		rows.Hooks = append(rows.Hooks, h.row())
		if len(h.Secrets) > 0 {
			signedWith[strconv.FormatUint(uint64(h.Number), 10)] = h.Secrets
		}
	}
	if list, err = json.Marshal(rows); err != nil || len(signedWith) == 0 {
		return list, nil, err
	}
	secrets, err = json.Marshal(signedWith)
	return list, secrets, err
}

// Hooks returns the hooks in the order in which they were added.
func (s *Set) Hooks() []*Hook {
	if s == nil {
		return nil
	}
	return slices.Clone(s.hooks)
}

// Named returns the hook with a name; a fault.NotFound error if there is none.
func (s *Set) Named(name string) (*Hook, error) {
	if s != nil {
		for _, h := range s.hooks {
			if h.Name == name {
				return h, nil
			}
		}
	}
	return nil, fault.New(fault.NotFound, "the database has no hook that is called %.80q", name)
}

// Has reports whether there is a hook with a number.
func (s *Set) Has(number uint32) bool {
	return s != nil && slices.ContainsFunc(s.hooks, func(h *Hook) bool { return h.Number == number })
}

// IsEmpty reports whether there are no hooks.
func (s *Set) IsEmpty() bool { return s == nil || len(s.hooks) == 0 }

// With returns a set that has one more hook, and that hook with its number.
func (s *Set) With(h Hook) (*Set, *Hook, error) {
	if err := h.Check(); err != nil {
		return nil, nil, err
	}
	old := s
	if old == nil {
		old = &Set{next: 1}
	}
	if _, err := old.Named(h.Name); err == nil {
		return nil, nil, fault.New(fault.Conflict, "the database has a hook that is called %q already", h.Name)
	}
	if len(old.hooks) >= MaxHooks {
		return nil, nil, fault.New(fault.Conflict, "the database has %d hooks: remove one first", len(old.hooks))
	}
	h.Number = old.next
	return &Set{next: old.next + 1, hooks: append(slices.Clone(old.hooks), &h)}, &h, nil
}

// Revised returns a set in which the hook with a name is what change makes of it.
func (s *Set) Revised(name string, change func(*Hook) error) (*Set, *Hook, error) {
	was, err := s.Named(name)
	if err != nil {
		return nil, nil, err
	}
	is := *was
	if err := change(&is); err != nil {
		return nil, nil, err
	}
	is.Number = was.Number
	if err := is.Check(); err != nil {
		return nil, nil, err
	}
	hooks := slices.Clone(s.hooks)
	hooks[slices.Index(hooks, was)] = &is
	return &Set{next: s.next, hooks: hooks}, &is, nil
}

// Without returns a set that lacks the hook with a name, and that hook.
func (s *Set) Without(name string) (*Set, *Hook, error) {
	was, err := s.Named(name)
	if err != nil {
		return nil, nil, err
	}
	hooks := slices.DeleteFunc(slices.Clone(s.hooks), func(h *Hook) bool { return h == was })
	return &Set{next: s.next, hooks: hooks}, was, nil
}

// A wholeRow is one hook with its secrets, for other nodes of a cluster.
type wholeRow struct {
	hookRow
	Secrets []string `json:"secrets,omitempty"`
}

func (h *Hook) row() hookRow {
	return hookRow{h.Number, h.Name, h.Pattern.String(), h.URL, h.Events.Names(), h.Created, h.Paused}
}

// Encode returns the hook as text, with its secrets.
func (h *Hook) Encode() ([]byte, error) { return json.Marshal(wholeRow{h.row(), h.Secrets}) }

// DecodeHook reads what Encode has written.
func DecodeHook(text []byte) (*Hook, error) {
	var row wholeRow
	if json.Unmarshal(text, &row) != nil { // whose error would show a part of the secrets
		return nil, errors.New("the hook cannot be read")
	}
	h, err := row.hook()
	if err != nil {
		return nil, err
	}
	h.Secrets = row.Secrets
	return h, nil
}
