package engine

import (
	"context"
	"reflect"
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file changes settings. What is asked for is data, which another node can be sent, and is
// worked out at its turn in the order of commits, on the settings that are in force then. It
// may be worked out several times: see takeBack.

// A reviser is a change of settings that is asked for.
type reviser interface {
	revise(w *writer, s *state.Settings) (revision, error)
}

// A revision is a change of settings, perhaps with the rows of an index.
type revision struct {
	rows store.Settings
	step *store.IndexRows
	// hooks are rows of hooks that are deleted.
	hooks []store.HookRow
	// told is what the client is told.
	told *Revised
}

// Revised is what a change of settings has found out.
type Revised struct {
	Revoked int        // how many keys of accounts were taken away
	Hook    *hook.Hook // as it is after the change, or was before it went
}

// revise changes settings at its turn in the order of commits.
func (d *Database) revise(ctx context.Context, change reviser) (Revised, error) {
	commit, err := d.Write(ctx, Request{revise: change, Who: operator})
	if err != nil || commit.Revised == nil {
		return Revised{}, err
	}
	return *commit.Revised, nil
}

// setRows replaces settings, whatever they are.
type setRows store.Settings

func (c setRows) revise(*writer, *state.Settings) (revision, error) {
	return revision{rows: store.Settings(c)}, nil
}

// A deploy puts rules in force, which ask for indexes.
type deploy struct {
	Deployment
	wanted []state.IndexRule
}

func (c *deploy) revise(w *writer, s *state.Settings) (revision, error) {
	if c.IfMatch != "" && c.IfMatch != RulesETag(w.db, documentOf(s)) {
		return revision{}, errMismatch
	}
	version := state.RulesVersion{Millis: w.db.source.Clock.Millis(), By: c.By, Text: c.Document}
	return revision{rows: store.Settings{
		state.SettingRules:   []byte(c.Document),
		state.SettingIndexes: s.List.With(c.wanted).Encode(),
		state.SettingHistory: s.HistoryWith(version),
	}}, nil
}

// An addAccount adds a key to a service account.
type addAccount auth.Account

func (c *addAccount) revise(_ *writer, s *state.Settings) (revision, error) {
	switch list := s.Accounts; {
	case slices.ContainsFunc(list, func(other auth.Account) bool { return other.KeyID == c.KeyID }):
		return revision{}, fault.New(fault.Conflict, "the database has an account with this key already")
	case len(list) >= maxAccounts:
		return revision{}, fault.New(fault.Conflict, "the database has %d keys of accounts: revoke one first", len(list))
	}
	return setAccounts(append(slices.Clone(s.Accounts), auth.Account(*c)), 0)
}

// A revokeAccount takes away the key with an id, or all keys of the account with a name.
type revokeAccount string

func (c revokeAccount) revise(_ *writer, s *state.Settings) (revision, error) {
	left := slices.DeleteFunc(slices.Clone(s.Accounts), func(a auth.Account) bool {
		return a.KeyID == string(c) || a.Name == string(c)
	})
	revoked := len(s.Accounts) - len(left)
	if revoked == 0 {
		return revision{}, fault.New(fault.NotFound, "the database has no account and no key of one that is called %.60q", string(c))
	}
	return setAccounts(left, revoked)
}

func setAccounts(list []auth.Account, revoked int) (revision, error) {
	text, err := state.EncodeAccounts(list)
	return revision{rows: store.Settings{state.SettingAccounts: text}, told: &Revised{Revoked: revoked}}, err
}

// An addHook adds a webhook.
type addHook hook.Hook

func (c *addHook) revise(_ *writer, s *state.Settings) (revision, error) {
	return setHooks(s.Hooks.With(hook.Hook(*c)))
}

// A removeHook removes the webhook with a name.
type removeHook string

func (c removeHook) revise(_ *writer, s *state.Settings) (revision, error) {
	return setHooks(s.Hooks.Without(string(c)))
}

// A replaceHook makes another of a webhook, if it is still what it was.
type replaceHook struct{ was, is *hook.Hook }

func (c replaceHook) revise(_ *writer, s *state.Settings) (revision, error) {
	return setHooks(s.Hooks.Revised(c.was.Name, func(h *hook.Hook) error {
		if !reflect.DeepEqual(h, c.was) {
			return errHookChanged
		}
		*h = *c.is
		return nil
	}))
}

var errHookChanged = fault.New(fault.Precondition, "the hook was changed meanwhile, try again")

// setHooks replaces the webhooks, of which one was changed.
func setHooks(next *hook.Set, changed *hook.Hook, err error) (revision, error) {
	if err != nil {
		return revision{}, err
	}
	list, secrets, err := next.Encode()
	r := revision{rows: store.Settings{state.SettingHooks: list, state.SettingHookSecrets: secrets}, told: &Revised{Hook: changed}}
	if !next.Has(changed.Number) {
		r.hooks = []store.HookRow{{Hook: changed.Number, Gone: true}}
	}
	return r, err
}

// An indexStep is a step of building or dropping an index, with rows that are worked out. They
// are used up by it, so it is made once. Only the home makes steps.
type indexStep func(*state.Settings) (revision, error)

func (c indexStep) revise(_ *writer, s *state.Settings) (revision, error) { return c(s) }
