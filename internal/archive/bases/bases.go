// Package bases makes the bases of an archive: all rows of a store at one view, with
// what is known of each database. Package restore makes a store of one again.
package bases

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/transfer"
	"github.com/livetree/livetree/internal/tree"
)

// Options of Take. Now is needed.
type Options struct {
	Now func() time.Time
	// HideKey is the key by which app secrets are hashed: the base holds the hashes in
	// their place. Bare says that it holds the secrets: for one that is encrypted.
	HideKey []byte
	Bare    bool
	// Chain, if it is set, returns where the chain of a database stands at a position,
	// nil if that is not known.
	Chain func(id store.ID, position uint64) *archive.Hash
	// SkipTrees leaves out the hashes of the trees, for which all data is read twice.
	SkipTrees bool
}

var errNoKey = errors.New("a base needs a key that hides its secrets")

// Take sends a base of a store, which goes on being served, into an archive. It holds a
// view until the base is sent: what is deleted meanwhile takes space for so long. In
// memory there is one part, and a few bytes for each database.
func Take(ctx context.Context, s *store.Store, w *archive.Writer, opts Options) (archive.Manifest, error) {
	if len(opts.HideKey) == 0 && !opts.Bare {
		return archive.Manifest{}, errNoKey
	}
	b, err := w.NewBase(ctx)
	if err != nil {
		return archive.Manifest{}, err
	}
	// The view comes second: it shows all that was sent before the base was begun.
	view := s.View()
	defer view.Release()
	made := opts.Now()
	t := &taking{Options: opts, view: view, base: b}
	if err := t.send(ctx); err != nil {
		b.Abandon(ctx)
		return archive.Manifest{}, err
	}
	m, err := b.Commit(ctx, made)
	if err != nil {
		b.Abandon(ctx)
	}
	return m, err
}

// A taking is a base that is being made.
type taking struct {
	Options
	view *store.View
	base *archive.BaseWriter
}

// A size is what the rows of a database take.
type size struct{ rows, bytes int64 }

func (t *taking) send(ctx context.Context) error {
	source := t.view.Tree(0).Reader().Source
	var list []transfer.Database
	err := transfer.Databases(source, func(d transfer.Database) error {
		list = append(list, d)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	sizes := make(map[store.ID]size, len(list))
	for _, d := range list {
		sizes[d.ID] = size{}
	}
	err = transfer.Export(source, t.change, func(key, value []byte) error {
		is, named := sizes[transfer.DatabaseOf(key)]
		if !named {
			return ctx.Err() // in a cluster: another has its name by now, and its drop is on its way
		}
		sizes[transfer.DatabaseOf(key)] = size{is.rows + 1, is.bytes + int64(len(key)+len(value))}
		return t.base.Row(ctx, key, value)
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b transfer.Database) int { return cmp.Compare(a.ID, b.ID) })
	for _, d := range list {
		if err := t.database(ctx, d, sizes[d.ID]); err != nil {
			return err
		}
	}
	return nil
}

// change hides secrets.
func (t *taking) change(name string, value []byte) []byte {
	if (name == state.SettingSecrets || name == state.SettingHookSecrets) && !t.Bare {
		return transfer.HideSecrets(t.HideKey, value)
	}
	return value
}

// database adds what is known of a database.
func (t *taking) database(ctx context.Context, d transfer.Database, is size) error {
	row := archive.Database{
		Number: uint32(d.ID), Name: d.Name, Position: d.Position, Millis: d.Millis, Rows: is.rows, Bytes: is.bytes,
	}
	if t.Chain != nil {
		row.Chain = t.Chain(d.ID, d.Position)
	}
	if !t.SkipTrees {
		var err error
		if row.Tree, err = TreeHash(ctx, t.view.Tree(d.ID)); err != nil {
			return err
		}
	}
	return t.base.Database(ctx, row)
}

// TreeHash returns the SHA-256 of a tree as text in export form, in hexadecimal: what
// GET /.json?format=export answers, without a line end.
func TreeHash(ctx context.Context, t store.Tree) (string, error) {
	sum := sha256.New()
	if err := t.Until(ctx.Done()).Print(sum, tree.Path{}, tree.Export); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
