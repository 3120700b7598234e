package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// The settings of a database.
const (
	settingSecrets = "secrets" // one secret on each line
	settingRules   = "rules"   // the rules document as it was written
	settingIndexes = "indexes" // an indexList
)

// OpenRules is the rules document that lets everybody read and write.
const OpenRules = `{
  "rules": {
    ".read": true,
    ".write": true
  }
}
`

// settings are the settings of a database at one commit, and what follows from
// them. They do not change.
type settings struct {
	rows    store.Settings
	list    indexList
	indexes *store.Indexes
}

func newSettings(rows store.Settings) (*settings, error) {
	s := &settings{rows: rows}
	var err error
	if s.list, err = decodeIndexes(rows[settingIndexes]); err != nil {
		return nil, fmt.Errorf("read the list of indexes: %w", err)
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
	return newSettings(rows)
}

// A revision is a change of settings, perhaps with the rows of an index.
type revision struct {
	rows store.Settings
	step *store.IndexRows
}

// allows reports whether somebody may read and write. Until rules are
// evaluated, a database is open or closed as a whole.
func (s *settings) allows(who auth.Identity) bool {
	return who.Admin || string(s.rows[settingRules]) == OpenRules
}

func (s *settings) secrets() []string {
	return slices.Collect(strings.SplitSeq(string(s.rows[settingSecrets]), "\n"))
}

var errDenied = fault.New(fault.Denied, "Permission denied")

// Identify returns who a credential belongs to. The empty credential is nobody.
func (d *Database) Identify(credential string) (auth.Identity, error) {
	return auth.Verify(credential, d.published.Load().settings.secrets())
}

// AllowRead reports whether somebody may read: nil, or a fault.Denied error.
func (s *Snapshot) AllowRead(who auth.Identity) error {
	if s.settings.allows(who) {
		return nil
	}
	return errDenied
}

// HasSecrets reports whether there is any credential for the database.
func (d *Database) HasSecrets() bool {
	return len(d.published.Load().settings.rows[settingSecrets]) > 0
}

// IsOpen reports whether the rules let everybody read and write everything.
func (d *Database) IsOpen() bool {
	return d.published.Load().settings.allows(auth.Identity{})
}

// SetSecrets replaces the app secrets.
func (d *Database) SetSecrets(ctx context.Context, secrets ...string) error {
	return d.set(ctx, settingSecrets, []byte(strings.Join(secrets, "\n")))
}

// SetRules replaces the rules document.
func (d *Database) SetRules(ctx context.Context, document string) error {
	return d.set(ctx, settingRules, []byte(document))
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
