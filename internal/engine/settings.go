package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
)

// The settings of a database.
const (
	settingSecrets  = "secrets"  // one secret on each line
	settingAccounts = "accounts" // a JSON list of accountRow
	settingRules    = "rules"    // the rules document as it was written
	settingIndexes  = "indexes"  // an indexList
)

// settings are the settings of a database at one commit, and what follows from
// them. They do not change.
type settings struct {
	rows     store.Settings
	secrets  []string // at least one; empty ones do not count
	accounts []auth.Account
	rules    *rules.Ruleset // nil for none: then nothing is allowed
	list     indexList
	indexes  *store.Indexes
}

// newSettings works out what follows from the rows; old may be nil.
func newSettings(rows store.Settings, old *settings) (*settings, error) {
	s := &settings{rows: rows, secrets: strings.Split(string(rows[settingSecrets]), "\n")}
	var err error
	document, ok := rows[settingRules]
	switch {
	case !ok:
	case old != nil && old.rules != nil && bytes.Equal(document, old.rows[settingRules]):
		s.rules = old.rules
	default:
		if s.rules, err = rules.Compile(string(document)); err != nil {
			return nil, fmt.Errorf("compile the rules: %w", err)
		}
	}
	if old != nil && bytes.Equal(rows[settingAccounts], old.rows[settingAccounts]) {
		s.accounts = old.accounts
	} else if s.accounts, err = decodeAccounts(rows[settingAccounts]); err != nil {
		return nil, fmt.Errorf("read the accounts: %w", err)
	}
	if s.list, err = decodeIndexes(rows[settingIndexes]); err != nil {
		return nil, fmt.Errorf("read the list of indexes: %w", err)
	}
	if old != nil && s.list.keepsLike(old.list) {
		s.indexes = old.indexes
		return s, nil
	}
	s.indexes, err = s.list.tree()
	return s, err
}

// with returns the settings after a change.
func (s *settings) with(changed store.Settings) (*settings, error) {
	if len(changed) == 0 {
		return s, nil
	}
	rows := maps.Clone(s.rows)
	for name, value := range changed {
		if value == nil {
			delete(rows, name)
		} else {
			rows[name] = value
		}
	}
	return newSettings(rows, s)
}

// judgesLike reports whether the other settings allow the same to the same
// people.
func (s *settings) judgesLike(other *settings) bool {
	return s.rules == other.rules &&
		bytes.Equal(s.rows[settingSecrets], other.rows[settingSecrets]) &&
		bytes.Equal(s.rows[settingAccounts], other.rows[settingAccounts])
}

// preparesLike reports whether what was prepared under the other settings would be
// the same under these. It is while an index is built, which changes the settings
// with each step.
func (s *settings) preparesLike(other *settings) bool {
	return s == other || s.indexes == other.indexes && s.judgesLike(other)
}

// A revision is a change of settings, perhaps with the rows of an index.
type revision struct {
	rows store.Settings
	step *store.IndexRows
}

// credentials are what identities are judged by.
func (s *settings) credentials(name string) auth.Database {
	return auth.Database{Name: name, Secrets: s.secrets, Accounts: s.accounts}
}

// Identify returns who a credential belongs to. The empty credential is nobody.
func (d *Database) Identify(ctx context.Context, credential string) (auth.Identity, error) {
	if credential == "" {
		return auth.Identity{}, nil
	}
	return d.opts.Verifier.Verify(ctx, credential, d.published.Load().settings.credentials(d.opts.Name))
}

// Holds reports whether an identity is still good. In a database that is closed none
// is: it was dropped perhaps, and another has its name.
func (d *Database) Holds(who auth.Identity) bool {
	select {
	case <-d.ended:
		return false
	default:
		return d.watches.holds(who, d.published.Load())
	}
}

// HasSecrets reports whether there is any credential for the database.
func (d *Database) HasSecrets() bool {
	return len(d.published.Load().settings.rows[settingSecrets]) > 0
}

// Secrets returns the app secrets.
func (d *Database) Secrets() []string {
	if !d.HasSecrets() {
		return nil
	}
	return slices.Clone(d.published.Load().settings.secrets)
}

// HasTheseSecrets reports whether the app secrets are exactly these.
func (d *Database) HasTheseSecrets(secrets []string) bool {
	return slices.Equal(d.published.Load().settings.secrets, secrets)
}

// HasSecret reports whether a text is one of the app secrets.
func (d *Database) HasSecret(text string) bool {
	return slices.Contains(d.published.Load().settings.secrets, text)
}

// IsOpen reports whether the rules let everybody read or write everything.
func (d *Database) IsOpen() bool {
	ruleset := d.published.Load().settings.rules
	if ruleset == nil {
		return false
	}
	read, write := ruleset.OpensRoot()
	return read || write
}

// SetSecrets replaces the app secrets.
func (d *Database) SetSecrets(ctx context.Context, secrets ...string) error {
	return d.set(ctx, settingSecrets, []byte(strings.Join(secrets, "\n")))
}

func (d *Database) set(ctx context.Context, name string, value []byte) error {
	return d.revise(ctx, func(*settings) (revision, error) {
		return revision{rows: store.Settings{name: value}}, nil
	})
}

// revise changes settings at its turn in the order of commits.
func (d *Database) revise(ctx context.Context, change func(*settings) (revision, error)) error {
	_, err := d.Write(ctx, Request{revise: change})
	return err
}
