package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// Identify returns who a credential belongs to. The empty credential is nobody.
func (d *Database) Identify(ctx context.Context, credential string) (auth.Identity, error) {
	if credential == "" {
		return auth.Identity{}, nil
	}
	return d.source.Verifier.Verify(ctx, credential, d.published.Load().Settings.Credentials(d.source.Name))
}

// Holds reports whether an identity is still good. In a database that is closed none
// is: it was dropped perhaps, and another has its name.
func (d *Database) Holds(who auth.Identity) bool {
	select {
	case <-d.ended:
		return false
	default:
		return d.source.Holds(who, d.published.Load())
	}
}

// HasSecrets reports whether there is any credential for the database.
func (d *Database) HasSecrets() bool {
	return d.published.Load().Settings.HasSecrets()
}

// HasWeakSecret reports whether an app secret is from a time when it could be
// shorter than it may be today.
func (d *Database) HasWeakSecret() bool { return d.published.Load().Settings.Weak }

// Secrets returns the app secrets.
func (d *Database) Secrets() []string {
	if !d.HasSecrets() {
		return nil
	}
	return slices.Clone(d.published.Load().Settings.Secrets)
}

// HasTheseSecrets reports whether the app secrets are exactly these.
func (d *Database) HasTheseSecrets(secrets []string) bool {
	return slices.Equal(d.published.Load().Settings.Secrets, secrets)
}

// HasSecret reports whether a text is one of the app secrets.
func (d *Database) HasSecret(text string) bool {
	return slices.Contains(d.published.Load().Settings.Secrets, text)
}

// IsOpen reports whether the rules let everybody read or write everything.
func (d *Database) IsOpen() bool {
	ruleset := d.published.Load().Settings.Rules
	if ruleset == nil {
		return false
	}
	read, write := ruleset.OpensRoot()
	return read || write
}

// SetSecrets replaces the app secrets.
func (d *Database) SetSecrets(ctx context.Context, secrets ...string) error {
	return d.set(ctx, state.SettingSecrets, []byte(strings.Join(secrets, "\n")))
}

func (d *Database) set(ctx context.Context, name string, value []byte) error {
	_, err := d.revise(ctx, setRows{name: value})
	return err
}

// operator is who changes settings.
var operator = auth.Identity{By: tree.ByOperator}
