package state

import (
	"bytes"
	"fmt"
	"maps"
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
	Rows     store.Settings
	Secrets  []string // at least one; empty ones do not count
	Weak     bool     // one of them would be refused today
	Accounts []auth.Account
	Rules    *rules.Ruleset // nil for none: then nothing is allowed
	List     IndexList
	Indexes  *store.Indexes
	Hooks    *hook.Set // nil if there never was one
}

// noSettings are those of the databases that have none: there may be very many.
var noSettings = &Settings{Rows: store.Settings{}, Secrets: []string{""}, List: IndexList{Next: 1}, Indexes: noIndexes}

// NewSettings works out what follows from the rows; old may be nil.
func NewSettings(rows store.Settings, old *Settings) (*Settings, error) {
	if len(rows) == 0 && old == nil {
		return noSettings, nil
	}
	s := &Settings{Rows: rows, Secrets: strings.Split(string(rows[SettingSecrets]), "\n")}
	s.Weak = slices.ContainsFunc(s.Secrets, func(secret string) bool { return secret != "" && auth.CheckSecret(secret) != nil })
	var err error
	document, ok := rows[SettingRules]
	switch {
	case !ok:
	case old != nil && old.Rules != nil && bytes.Equal(document, old.Rows[SettingRules]):
		s.Rules = old.Rules
	default:
		if s.Rules, err = rules.Shared(document); err != nil {
			return nil, fmt.Errorf("compile the rules: %w", err)
		}
	}
	if old != nil && bytes.Equal(rows[SettingAccounts], old.Rows[SettingAccounts]) {
		s.Accounts = old.Accounts
	} else if s.Accounts, err = DecodeAccounts(rows[SettingAccounts]); err != nil {
		return nil, fmt.Errorf("read the accounts: %w", err)
	}
	if err := s.decodeHooks(old); err != nil {
		return nil, fmt.Errorf("read the hooks: %w", err)
	}
	if s.List, err = decodeIndexes(rows[SettingIndexes]); err != nil {
		return nil, fmt.Errorf("read the list of indexes: %w", err)
	}
	if old != nil && s.List.keepsLike(old.List) {
		s.Indexes = old.Indexes
		return s, nil
	}
	s.Indexes, err = s.List.tree()
	return s, err
}

// decodeHooks works out the hooks; old may be nil.
func (s *Settings) decodeHooks(old *Settings) (err error) {
	list, secrets := s.Rows[SettingHooks], s.Rows[SettingHookSecrets]
	if old != nil && bytes.Equal(list, old.Rows[SettingHooks]) && bytes.Equal(secrets, old.Rows[SettingHookSecrets]) {
		s.Hooks = old.Hooks
		return nil
	}
	s.Hooks, err = hook.DecodeSet(list, secrets)
	return err
}

// With returns the settings after a change.
func (s *Settings) With(changed store.Settings) (*Settings, error) {
	if len(changed) == 0 {
		return s, nil
	}
	rows := maps.Clone(s.Rows)
	for name, value := range changed {
		if value == nil {
			delete(rows, name)
		} else {
			rows[name] = value
		}
	}
	return NewSettings(rows, s)
}

// JudgesLike reports whether the other settings allow the same to the same
// people.
func (s *Settings) JudgesLike(other *Settings) bool {
	return s.Rules == other.Rules &&
		bytes.Equal(s.Rows[SettingSecrets], other.Rows[SettingSecrets]) &&
		bytes.Equal(s.Rows[SettingAccounts], other.Rows[SettingAccounts])
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
