package store

import (
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
)

// transferDir is where the tables of a Loader are made, in the data directory.
const transferDir = "transfer.tmp"

// NewLoader returns what fills a store that is new with the rows of databases. The
// store must not be used beside it, and be closed after it.
func NewLoader(s *Store) (*transfer.Loader, error) {
	if err := s.dir.Raise(layout.FormatVersion); err != nil {
		return nil, err
	}
	options := s.pebbleOptions(s.opts.FS)
	options.EnsureDefaults()
	return transfer.NewLoader(transfer.Options{
		DB: s.db, FS: s.opts.FS, Dir: s.dir.Join(transferDir),
		Tables: options.MakeWriterOptions(len(options.Levels)-1, formatMajorVersion.MaxTableFormat()),
	})
}
