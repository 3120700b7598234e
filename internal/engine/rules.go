package engine

import (
	"context"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// Rules returns the rules document as it was written.
func (d *Database) Rules() string {
	if r := d.published.Load().Settings.Rules; r != nil {
		return r.Source()
	}
	return state.ClosedRules
}

// StrictRules returns the rules document as JSON without comments.
func (d *Database) StrictRules() []byte {
	return d.published.Load().Settings.Ruleset().Strict()
}

// SetRules replaces the rules document, which is in force for every write behind
// it, and returns the position of the commit. Indexes that it asks for are built in the
// background.
func (d *Database) SetRules(ctx context.Context, document string) (position uint64, err error) {
	ruleset, err := state.CompileRules(document)
	if err != nil {
		return 0, err
	}
	wanted, err := state.IndexRules(ruleset)
	if err != nil {
		return 0, err
	}
	commit, err := d.Write(ctx, Request{revise: func(s *state.Settings) (revision, error) {
		return revision{rows: store.Settings{
			state.SettingRules:   []byte(document),
			state.SettingIndexes: s.List.With(wanted).Encode(),
		}}, nil
	}})
	return commit.Position, err
}
