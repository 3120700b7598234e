package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// privateDirs are the directories beside the store that a server needs to be the
// same server: the files of secrets, and the authority of its certificate.
var privateDirs = []string{"secrets", "tls"}

// authorityKey signs for whatever clients trust the server's authority with. Backups
// travel further than the data directory, so it is left out of them unless the
// operator asks for it.
const authorityKey = "tls/ca-key.pem"

// Options configure Take. The zero value works.
type Options struct {
	// Version is that of the server, for the manifest.
	Version string
	// Now is the clock.
	Now func() time.Time
	// BytesPerSecond bounds how fast files and trees are read, so that writers
	// do not feel it: 32 MiB by default, negative for no bound.
	BytesPerSecond int64
	// Foreground, if set, is how long requests take: it rests by that, in addition.
	Foreground *pause.Foreground
	// Logger is told of what is left to do by hand; nothing by default.
	Logger *slog.Logger
	// AuthorityKey also takes the key of the server's own certificate authority.
	AuthorityKey bool
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Take makes a backup of a store, which goes on being served, in the directory
// target, which must be empty or not exist. Data is the store's data directory.
// Everything that was committed and durable when it is called will be in the
// backup.
//
// On the file system of the data directory the tables are hard links: the backup
// takes space only for what the store rewrites later, and does not survive the
// disk. Elsewhere it is copied.
func Take(ctx context.Context, s *store.Store, data, target string, opts Options) (Manifest, error) {
	opts = opts.withDefaults()
	m, err := take(ctx, s, data, target, opts)
	if err != nil {
		return Manifest{}, fmt.Errorf("back up %s: %w", data, err)
	}
	return m, nil
}

func take(ctx context.Context, s *store.Store, data, target string, opts Options) (m Manifest, err error) {
	place, err := newSite(target)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, place.clear())
		}
	}()
	t := &taking{Options: opts, root: filepath.Join(place.path, dataDir), pacer: newPacer(opts)}
	t.Format, t.Server, t.Made = formatVersion, opts.Version, opts.Now().UTC()
	if err := t.store(ctx, s); err != nil {
		return m, err
	}
	for _, dir := range privateDirs {
		if err := t.private(ctx, data, dir); err != nil {
			return m, err
		}
	}
	if err := t.describe(ctx); err != nil {
		return m, err
	}
	slices.SortFunc(t.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if err := t.Manifest.write(place.path); err != nil {
		return m, err
	}
	return t.Manifest, place.open(manifestFile)
}

// A taking is a backup that is being made.
type taking struct {
	Options
	Manifest
	root  string // of the data directory in it
	pacer *pacer
}

// store takes the checkpoint over.
func (t *taking) store(ctx context.Context, s *store.Store) (err error) {
	c, err := s.Checkpoint()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	t.Group, t.PausedMillis = c.Group, c.Paused.Milliseconds()
	names, err := listFiles(c.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := linkFile(ctx, filepath.Join(c.Dir, filepath.FromSlash(name)), t.root, name, t.pacer)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
	}
	return nil
}

// private copies a directory of secrets or keys.
func (t *taking) private(ctx context.Context, data, dir string) error {
	names, err := listFiles(filepath.Join(data, dir))
	if err != nil || len(names) == 0 {
		return err
	}
	t.Private = append(t.Private, dir)
	for _, name := range names {
		name = dir + "/" + name
		if name == authorityKey && !t.AuthorityKey {
			continue
		}
		f, err := copyFile(ctx, filepath.Join(data, filepath.FromSlash(name)), t.root, name, t.pacer)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was being replaced
		}
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
	}
	return nil
}

// describe opens the copy, which shows that it can be, and reads it all.
func (t *taking) describe(ctx context.Context) (err error) {
	a, err := store.OpenArchive(t.root, store.Options{Logger: t.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.Group != t.Group {
		return fmt.Errorf("the copy ends at group %d instead of %d: try again, and look after the disk", a.Group, t.Group)
	}
	t.Epoch = FormatEpoch(a.Epoch)
	databases, err := listDatabases(a)
	if err != nil {
		return err
	}
	for _, n := range databases {
		d, err := describe(ctx, n.name, a.Tree(n.id), t.pacer)
		if err != nil {
			return fmt.Errorf("database %s: %w", n.name, err)
		}
		t.Databases = append(t.Databases, d)
	}
	return nil
}

// FormatEpoch writes an epoch as manifests do.
func FormatEpoch(epoch uint64) string { return fmt.Sprintf("%016x", epoch) }
