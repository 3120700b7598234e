package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/datadir"
)

// ErrNoLoss says that there is nothing to be accepted.
var ErrNoLoss = errors.New("no table is damaged, so there is no loss to accept")

// A Loss is what is lost of one database, or of all.
type Loss struct {
	Database string `json:"database,omitempty"`
	What     string `json:"what"`
}

// Losses are what is lost of a data directory, and what was rescued of it.
type Losses struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // that are damaged
	Lost  []Loss   `json:"lost"`
	// Accepted is true if the rest was written to Target: so many rows of data.
	Accepted  bool   `json:"accepted"`
	Target    string `json:"target,omitempty"`
	Databases int    `json:"databases,omitempty"`
	Rows      int    `json:"rows,omitempty"`
}

// String describes the losses for people.
func (l *Losses) String() string {
	var b strings.Builder
	for _, file := range l.Files {
		fmt.Fprintf(&b, "damaged: %s\n", file)
	}
	for _, loss := range l.Lost {
		if loss.Database == "" {
			fmt.Fprintf(&b, "LOST: %s\n", loss.What)
		} else {
			fmt.Fprintf(&b, "LOST: database %s: %s\n", loss.Database, loss.What)
		}
	}
	if len(l.Lost) == 0 {
		b.WriteString("no data is lost: what is damaged can be made again\n")
	}
	return b.String()
}

// AcceptLoss makes a data directory in target, which must be empty or not exist, of
// what can be read of a damaged one whose server is stopped. Nothing in data
// changes. What is lost is in the result; without accept that is all, and nothing
// is written. The error wraps ErrNoLoss if no table is damaged, and
// store.ErrDamaged if what is left cannot be told from what is lost.
func AcceptLoss(ctx context.Context, data, target string, accept bool, logger *slog.Logger) (l *Losses, err error) {
	lock, err := store.LockDirectory(data, store.Options{})
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	a, err := store.OpenArchive(data, store.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	w := &rescue{Losses: &Losses{Dir: data}, archive: a}
	if err := w.look(ctx); err != nil || !accept {
		return w.Losses, err
	}
	place, err := newSite(target)
	if err != nil {
		return w.Losses, err
	}
	if err := w.write(ctx, place, logger); err != nil {
		return w.Losses, errors.Join(fmt.Errorf("rescue what is left of %s: %w", data, err), place.clear())
	}
	w.Accepted, w.Target = true, place.Path
	return w.Losses, nil
}

// A rescue is what AcceptLoss knows.
type rescue struct {
	*Losses
	archive *store.Archive
	losses  *store.Losses
	names   map[string]store.ID
}

// look finds out what is lost.
func (w *rescue) look(ctx context.Context) (err error) {
	if w.losses, err = w.archive.Losses(ctx); err != nil {
		return err
	}
	if len(w.losses.Files) == 0 {
		return fmt.Errorf("%s: %w; livetree check says what else may be wrong", w.Dir, ErrNoLoss)
	}
	for _, f := range w.losses.Files {
		w.Files = append(w.Files, f.File)
	}
	if w.names, err = w.archive.NamesBeside(w.losses); err != nil {
		return err
	}
	if w.losses.Names() {
		w.Lost = append(w.Lost, Loss{What: "databases whose names are in what is damaged, with all that they hold"})
	}
	for _, name := range w.sorted() {
		for _, what := range w.losses.Data(w.names[name]) {
			w.Lost = append(w.Lost, Loss{name, what})
		}
		if w.losses.Settings(w.names[name]) {
			w.Lost = append(w.Lost, Loss{name, "settings: rules, secrets, accounts or the list of indexes; without rules nobody but the holder of a secret is let in"})
		}
		if w.losses.Left(w.names[name]) {
			w.Lost = append(w.Lost, Loss{name, "what clients have left to be written when they disconnect"})
		}
	}
	return nil
}

func (w *rescue) sorted() []string { return slices.Sorted(maps.Keys(w.names)) }

// write makes the new data directory.
func (w *rescue) write(ctx context.Context, place *site, logger *slog.Logger) error {
	s, err := store.Open(place.path, store.Options{BallastBytes: -1, Logger: logger})
	if err != nil {
		return err
	}
	if err := errors.Join(w.databases(ctx, s), s.Close()); err != nil {
		return err
	}
	for _, dir := range privateDirs {
		names, err := listFiles(filepath.Join(w.Dir, dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			name = dir + "/" + name
			if _, err := copyFile(ctx, filepath.Join(w.Dir, filepath.FromSlash(name)), place.path, name, nil); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	// Nobody is to serve what is not in order.
	r := newReport(place.Path)
	if err := (&inspection{report: r, advice: restoreBackup}).run(ctx, place.path); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	return place.open(datadir.MarkerFile)
}

func (w *rescue) databases(ctx context.Context, s *store.Store) error {
	for _, name := range w.sorted() {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := s.Create(name)
		if err != nil {
			return err
		}
		rescued, err := w.archive.Rescue(w.losses, w.names[name], s, id, state.Unbuilt)
		if err != nil {
			return fmt.Errorf("database %s: %w", name, err)
		}
		w.Databases, w.Rows = w.Databases+1, w.Rows+rescued.Rows
		for _, path := range rescued.Unreadable {
			w.Lost = append(w.Lost, Loss{name, path + ", which is stored as nonsense"})
		}
	}
	return nil
}
