package engine

import (
	"context"

	"github.com/livetree/livetree/internal/state"
)

// Rules returns the rules document as it was written.
func (d *Database) Rules() string { return documentOf(d.published.Load().Settings) }

func documentOf(s *state.Settings) string {
	if s.Rules != nil {
		return s.Rules.Source()
	}
	return state.ClosedRules
}

// RulesETag returns the ETag that a rules document has in a database.
func RulesETag(d *Database, document string) string { return d.source.ETagOfText(document) }

// A Deployment is a rules document that is to be put in force.
type Deployment struct {
	Document string
	// IfMatch, if not empty, is the ETag that the document in force must have.
	IfMatch string
	// By says who does it, for the history.
	By string
}

// SetRules is Deploy of a document without a condition, by nobody in particular.
func (d *Database) SetRules(ctx context.Context, document string) (position uint64, err error) {
	return Deploy(ctx, d, Deployment{Document: document})
}

// Deploy replaces the rules document of a database, which is in force for every write behind
// it, and returns the position of the commit. Indexes that it asks for are built in the
// background. The history of documents is written with it.
func Deploy(ctx context.Context, d *Database, new Deployment) (position uint64, err error) {
	ruleset, err := state.CompileRules(new.Document)
	if err != nil {
		return 0, err
	}
	wanted, err := state.IndexRules(ruleset)
	if err != nil {
		return 0, err
	}
	commit, err := d.Write(ctx, Request{Who: operator, revise: &deploy{new, wanted}})
	return commit.Position, err
}
