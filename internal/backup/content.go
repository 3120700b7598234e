package backup

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// describe works out the entry of a database in the manifest, in constant memory.
func describe(ctx context.Context, name string, t store.Tree, p *pacer) (Database, error) {
	d := Database{Name: name}
	var err error
	if d.Position, err = t.Position(); err != nil {
		return d, err
	}
	text := newHasher()
	if err := t.Print(p.writer(ctx, text), tree.Path{}, tree.Export); err != nil {
		return d, err
	}
	d.Tree, d.Bytes = text.hex(), text.bytes
	settings, err := t.Settings()
	if err != nil {
		return d, err
	}
	d.Settings, err = hashSettings(settings)
	return d, err
}

// hashSettings hashes, for each setting in the order of their names, a line with
// the name and the length of the value, and the value with a line feed.
func hashSettings(settings store.Settings) (string, error) {
	h := newHasher()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, err := fmt.Fprintf(h, "%s %d\n", name, len(settings[name])); err != nil {
			return "", err
		}
		if _, err := h.Write(settings[name]); err != nil {
			return "", err
		}
		if _, err := io.WriteString(h, "\n"); err != nil {
			return "", err
		}
	}
	return h.hex(), nil
}

// A named is a database of an archive.
type named struct {
	name string
	id   store.ID
}

func listDatabases(a *store.Archive) ([]named, error) {
	var list []named
	err := a.Names(func(name string, id store.ID) bool {
		list = append(list, named{name, id})
		return true
	})
	return list, err
}
