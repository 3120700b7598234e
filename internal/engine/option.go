package engine

import (
	"context"

	"github.com/livetree/livetree/internal/state"
)

// Option returns what an option of the database is set to, empty if it is not. An
// option is a small text that fronts keep for themselves.
func (d *Database) Option(name string) string {
	return d.published.Load().Settings.Option(name)
}

// SetOption sets an option; the empty text removes it.
func (d *Database) SetOption(ctx context.Context, name, text string) error {
	value := []byte(text)
	if text == "" {
		value = nil
	}
	return d.set(ctx, state.OptionPrefix+name, value)
}
