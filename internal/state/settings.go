package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
)

// The settings of a database.
const (
	SettingSecrets  = "secrets"  // one secret on each line
	SettingAccounts = "accounts" // a JSON list of accountRow
	SettingRules    = "rules"    // the rules document as it was written
	SettingIndexes  = "indexes"  // an IndexList

	// SettingHooks is the list of webhooks, SettingHookSecrets what they sign with: see hook.DecodeSet.
	SettingHooks       = "hooks"
	SettingHookSecrets = "hook-secrets"

	// OptionPrefix begins the names of settings that are options.
	OptionPrefix = "option/"
)

// Settings are the settings of a database at one commit, and what follows from
// them. They do not change.
type Settings struct {
	rows     rowList
	Secrets  []string // at least one; empty ones do not count
	Weak     bool     // one of them would be refused today
	Accounts []auth.Account
	Rules    *rules.Ruleset // nil for none: then nothing is allowed
	List     IndexList
	Indexes  *store.Indexes
	Hooks    *hook.Set // nil if there never was one
}

// noSettings are those of the databases that have none: there may be very many.
var noSettings = &Settings{Secrets: []string{""}, List: IndexList{Next: 1}, Indexes: noIndexes}

// NewSettings works out what follows from the rows.
func NewSettings(rows store.Settings) (*Settings, error) {
	if len(rows) == 0 {
		return noSettings, nil
	}
	return newSettings(newRows(rows), nil)
}

// newSettings is NewSettings where the rows were others before; old may be nil.
func newSettings(rows rowList, old *Settings) (*Settings, error) {
	s := &Settings{rows: rows, Secrets: strings.Split(rows.value(SettingSecrets), "\n")}
	s.Weak = slices.ContainsFunc(s.Secrets, func(secret string) bool { return secret != "" && auth.CheckSecret(secret) != nil })
	var err error
	if err = s.compileRules(old); err != nil {
		return nil, fmt.Errorf("compile the rules: %w", err)
	}
	if old != nil && s.keeps(old, SettingAccounts) {
		s.Accounts = old.Accounts
	} else if s.Accounts, err = DecodeAccounts(rows.bytes(SettingAccounts)); err != nil {
		return nil, fmt.Errorf("read the accounts: %w", err)
	}
	if old != nil && s.keeps(old, SettingHooks) && s.keeps(old, SettingHookSecrets) {
		s.Hooks = old.Hooks
	} else if s.Hooks, err = hook.DecodeSet(rows.bytes(SettingHooks), rows.bytes(SettingHookSecrets)); err != nil {
		return nil, fmt.Errorf("read the hooks: %w", err)
	}
	if s.List, err = decodeIndexes(rows.bytes(SettingIndexes)); err != nil {
		return nil, fmt.Errorf("read the list of indexes: %w", err)
	}
	if old != nil && s.List.keepsLike(old.List) {
		s.Indexes = old.Indexes
		return s, nil
	}
	s.Indexes, err = s.List.tree()
	return s, err
}

// keeps reports whether a row has the value that it had in other settings.
func (s *Settings) keeps(old *Settings, name string) bool {
	return s.rows.value(name) == old.rows.value(name)
}

// compileRules works out the ruleset; old may be nil. Databases with the same document share it, and its text.
func (s *Settings) compileRules(old *Settings) (err error) {
	at, ok := s.rows.find(SettingRules)
	switch {
	case !ok:
		return nil
	case old != nil && old.Rules != nil && s.keeps(old, SettingRules):
		s.Rules = old.Rules
	default:
		if s.Rules, err = rules.Shared(s.rows[at].value); err != nil {
			return err
		}
	}
	s.rows[at].value = s.Rules.Source()
	return nil
}

// With returns the settings after a change.
func (s *Settings) With(changed store.Settings) (*Settings, error) {
	if len(changed) == 0 {
		return s, nil
	}
	return newSettings(s.rows.with(changed), s)
}

// HasSecrets reports whether there is one.
func (s *Settings) HasSecrets() bool { return s.rows.value(SettingSecrets) != "" }

// Option returns an option, nothing if it is not set.
func (s *Settings) Option(name string) string { return s.rows.option(name) }

// JudgesLike reports whether the other settings allow the same to the same
// people.
func (s *Settings) JudgesLike(other *Settings) bool {
	return s.Rules == other.Rules && s.keeps(other, SettingSecrets) && s.keeps(other, SettingAccounts)
}

// PreparesLike reports whether what was prepared under the other settings would be
// the same under these. It is while an index is built, which changes the settings
// with each step.
func (s *Settings) PreparesLike(other *Settings) bool {
	return s == other || s.Indexes == other.Indexes && s.JudgesLike(other)
}

// Credentials are what identities are judged by.
func (s *Settings) Credentials(name string) auth.Database {
	return auth.Database{Name: name, Secrets: s.Secrets, Accounts: s.Accounts}
}
