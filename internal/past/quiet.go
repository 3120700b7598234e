package past

import (
	"context"
	"log/slog"
)

// Quiet returns a logger for the store of a moment, which passes on errors only. Such a store
// tells of the disk what the server's own one tells, too.
func Quiet(logger *slog.Logger) *slog.Logger {
	return slog.New(quiet{logger.With("store", "a view of the past").Handler()})
}

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
