package state

import (
	"errors"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
)

// OpenRules is the rules document that lets everybody read and write,
// ClosedRules the one that a database without rules behaves by.
const (
	OpenRules = `{
  "rules": {
    ".read": true,
    ".write": true
  }
}
`
	ClosedRules = `{
  "rules": {
    ".read": false,
    ".write": false
  }
}
`
)

// ErrDenied says that the rules do not allow something.
var ErrDenied = fault.New(fault.Denied, "Permission denied")

// noRules denies everything.
var noRules = func() *rules.Ruleset {
	r, err := rules.Compile(ClosedRules)
	if err != nil {
		panic(err)
	}
	return r
}()

// Ruleset returns the rules in force.
func (s *Settings) Ruleset() *rules.Ruleset {
	if s.Rules == nil {
		return noRules
	}
	return s.Rules
}

// CheckRules reports what is wrong with a rules document: nil, or a
// fault.Invalid error that lists it.
func CheckRules(document string) error {
	_, err := CompileRules(document)
	return err
}

// CompileRules returns the rules of a document, or the error of CheckRules.
func CompileRules(document string) (*rules.Ruleset, error) {
	ruleset, err := rules.Compile(document)
	if problems, ok := errors.AsType[rules.Problems](err); ok {
		return nil, fault.Wrap(fault.Invalid, err, "%s\n", problems.Error())
	}
	return ruleset, err
}

// IndexRules returns the indexes that a document asks for.
func IndexRules(ruleset *rules.Ruleset) ([]IndexRule, error) {
	var list []IndexRule
	for _, p := range ruleset.IndexPatterns() {
		index, err := query.ParseIndex(p.Index)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
		list = append(list, IndexRule{Pattern: p.Keys, Except: p.Except, Index: index, Expires: p.Expires})
	}
	return list, nil
}
