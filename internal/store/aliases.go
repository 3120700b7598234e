package store

import (
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/logkeep"
	"github.com/livetree/livetree/internal/store/seek"
)

// Types of the packages below that callers need.
type (
	// AheadBounds say when rows are read ahead of who looks them up.
	AheadBounds = seek.AheadBounds
	// An ID numbers a database within a store.
	ID = layout.ID
	// An Index is an order of children that rows are kept for.
	Index = layout.Index
	// Indexes say which indexes are in force where.
	Indexes = layout.Indexes
	// Settings are what a database keeps beside its tree: its rules, its secrets.
	// They change in the same order of commits as the tree.
	Settings = layout.Settings
	// A Batch is what one change does to the rows: data and log together.
	Batch = batch.Batch
	// An Effect is a batch that was read from its bytes.
	Effect = batch.Effect
	// An Applied says up to where a store has the records of a shard.
	Applied = layout.Applied
	// A LeftRow changes a row of what a connection has left to be written.
	LeftRow = batch.LeftRow
	// A HookRow is what a batch does to the rows of a hook.
	HookRow = batch.HookRow
	// Prepared holds the rows of the large nodes of a write, encoded before its turn.
	Prepared = batch.Prepared
	// A Frontier remembers where a database grows.
	Frontier = batch.Frontier
	// IndexRows are one step of building or dropping an index.
	IndexRows = batch.IndexRows
	// PriorityRows are a step of building the index by priority of a node.
	PriorityRows = batch.PriorityRows
	// LogKeep says how much of the log of changes is kept.
	LogKeep = logkeep.Keep
	// A Durations counts how long things took, and DurationCounts are what it has counted.
	Durations      = datadir.Durations
	DurationCounts = datadir.DurationCounts
	// A Cost is what a read has taken from the store.
	Cost = seek.Cost
	// A Last remembers the chunk that a tree was last asked for.
	Last = seek.Last
	// A Flaw is something in a store that no store writes.
	Flaw = inspect.Flaw
	// Losses are what cannot be read of an archive any more.
	Losses = inspect.Losses
)

const (
	// FormatVersion is the newest format of a data directory that is read.
	FormatVersion = layout.FormatVersion
	// MaxChunkBytes is the largest chunk limit that is allowed.
	MaxChunkBytes = layout.MaxChunkBytes
)
