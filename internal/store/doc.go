// Package store keeps trees on disk, in order, with their indexes and the log of their
// changes.
//
// One Store is one Pebble in one data directory, and holds any number of
// databases. FORMAT.md beside this file draws every key and value. The types
// to know:
//
//   - View, the store at one moment, every part of it durable. A View is cheap,
//     counted, and must be released.
//   - Tree, one database in a view, or live. It finds nodes and prints them, and
//     selects children by a query, through an index where there is one.
//   - Batch, what one change does to the rows. Build works it out against the
//     live tree; Commit applies it.
//   - Archive, a store that is opened only to be read.
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
// The work is done by the packages below: layout knows the bytes, seek finds rows, rowcache remembers them,
// batch works out changes, inspect checks and rescues, datadir is the directory and
// its file systems. This package joins them, orders commits, and answers reads:
//
//	store.go, commit.go, view.go       open, commit, sync, publish
//	tree.go, look.go, print.go         one node
//	select*.go, measure.go             the children that a query selects
//	memo.go, digest.go                 what reads remember
//	changes.go, log*.go                the change log, and how much of it is kept
//	health.go, damage.go, scrub.go     the disk
//	archive.go, checkpoint.go          backups
//
// The store reads no clock and no randomness but those of its Options and
// touches the disk only through Options.FS. It knows nothing of rules, of identities or
// of protocols. A failed sync ends the process: see Options.Fatal.
package store
