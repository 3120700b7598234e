package assembly

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/store"
)

// A source is what copies for other nodes are made from.
type source struct {
	store *store.Store
	extra func() []string
	node  *cluster.Node
}

// Checkpoint implements [membership.Source].
func (s source) Checkpoint(dir string) error {
	c, err := s.store.Checkpoint()
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(c.Dir, dir), c.Remove())
}

// Extra implements [membership.Source].
func (s source) Extra() []string { return s.extra() }

// Keep implements [membership.Source].
func (s source) Keep() (end func(sent bool)) { return cluster.KeepLog(s.node) }

// FirstWhole returns the first of some lists of files of which all are in a data directory, nil if none is.
func FirstWhole(data string, lists [][]string) []string {
	missing := func(name string) bool {
		_, err := os.Stat(filepath.Join(data, name))
		return err != nil
	}
	for _, files := range lists {
		if !slices.ContainsFunc(files, missing) {
			return files
		}
	}
	return nil
}
