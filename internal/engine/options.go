package engine

import (
	"context"

	"github.com/livetree/livetree/internal/store"
)

// optionPrefix begins the names of settings that are options.
const optionPrefix = "option/"

// Option returns what an option of the database is set to, empty if it is not. An
// option is a small text that fronts keep for themselves.
func (d *Database) Option(name string) string {
	return string(d.published.Load().settings.rows[optionPrefix+name])
}

// SetOption sets an option; the empty text removes it.
func (d *Database) SetOption(ctx context.Context, name, text string) error {
	value := []byte(text)
	if text == "" {
		value = nil
	}
	return d.revise(ctx, func(*settings) (revision, error) {
		return revision{rows: store.Settings{optionPrefix + name: value}}, nil
	})
}
