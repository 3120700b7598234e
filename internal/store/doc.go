// Package store keeps trees on disk, in order, with the log of their changes.
//
// One Store is one Pebble in one data directory, and holds any number of
// databases. FORMAT.md beside this file draws every key and value. The types
// to know:
//
//   - View, the store at one moment, every part of it durable. A View is cheap,
//     counted, and must be released.
//   - Tree, one database in a view, or live. It finds nodes and prints them.
//   - Batch, what one change does to the rows. Build works it out against the
//     live tree; Commit applies it.
//
// A small subtree is one row, its canonical JSON, called a chunk. A node that is
// larger than the chunk limit is split: it has no row of its own, only a row for
// its priority, and its children are chunks or split in turn. Readers accept any
// mixture, so the limit may change from one start to the next.
//
// Commits are applied at once and synced together: one syncer takes a snapshot,
// syncs the write-ahead log once, publishes the snapshot as the newest view, and
// then answers. So a view never shows what a crash could take back, and Live
// may: only the one goroutine that orders a database's writes may use it.
//
// The store reads no clock and no randomness but those of its Options and
// touches the disk only through Options.FS. It knows nothing of rules, queries or
// callers. A failed sync ends the process: see Options.Fatal.
package store
