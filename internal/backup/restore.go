package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/datadir"
)

// RestoreOptions configure Restore. The zero value works.
type RestoreOptions struct {
	// SkipContent leaves the rows and trees unread. The hashes of the files are
	// compared in any case.
	SkipContent bool
	// Logger is told why, if the disk ends the process; nothing by default.
	Logger *slog.Logger
	// Progress is told how far it has come, if it is set.
	Progress func(Progress)
}

// Restore makes a data directory from the backup in dir: what the server held when
// the backup was taken, with its secrets and its certificate authority. Target
// must be empty or not exist. A backup that is damaged is not restored: the error
// then wraps store.ErrDamaged, and the report says more. The epoch is a new one.
func Restore(ctx context.Context, dir, target string, opts RestoreOptions) (*Report, error) {
	place, err := newSite(target)
	if err != nil {
		return nil, fmt.Errorf("restore into %w", err)
	}
	r, err := restore(ctx, dir, place, opts)
	if err != nil {
		return r, errors.Join(fmt.Errorf("restore %s: %w", dir, err), place.clear())
	}
	return r, nil
}

func restore(ctx context.Context, dir string, place *site, opts RestoreOptions) (*Report, error) {
	m, r, err := verify(ctx, dir, !opts.SkipContent, opts.Progress)
	if err != nil {
		return r, err
	}
	if err := r.Err(); err != nil {
		return r, err
	}
	for _, want := range m.Files {
		from := filepath.Join(dir, dataDir, filepath.FromSlash(want.Name))
		got, err := copyFile(ctx, from, place.path, want.Name, nil)
		if err != nil {
			return r, err
		}
		if got != want {
			return r, fmt.Errorf("%s: %w: it was changed while it was read", want.Name, store.ErrDamaged)
		}
	}
	// Opening it also shows that a server can.
	if err := store.RenewEpoch(place.path, store.Options{Logger: opts.Logger, BallastBytes: -1}); err != nil {
		return r, err
	}
	return r, place.open(datadir.MarkerFile)
}
