package store

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store/gather"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
)

// Defaults and limits of Options.
const (
	DefaultChunkBytes = 2 << 10
	DefaultCacheBytes = 64 << 20
	DefaultMaxTables  = 4096

	minMemTableBytes    = 16 << 20
	maxMemTableBytes    = 64 << 20
	memTableShare       = 16
	rowShare            = 2
	defaultBallastBytes = 64 << 20
	defaultPriorityRows = 1000
	defaultStepChildren = 1000
	defaultGapSteps     = 32
)

// Options configure a Store. The zero value works.
type Options struct {
	// FS is the file system, the real one by default.
	FS vfs.FS
	// Now and Rand are the clock and the source of randomness.
	Now  func() time.Time
	Rand io.Reader
	// Logger is told of changes of state; nothing by default.
	Logger *slog.Logger
	// Fatal ends the process with an exit code after it was logged why. It must
	// not return: if the sync of the log failed and the store went on, writes
	// would be acknowledged that are not on disk.
	Fatal func(code int)

	// ChunkBytes is the largest subtree that is kept in one row, at most
	// MaxChunkBytes. A negative value keeps every leaf in a row of its own.
	ChunkBytes int
	// CacheBytes is the size of the cache: of blocks, rows and memos together. Memtables of the least
	// size come on top of it.
	CacheBytes int64
	// MaxTables is how many tables are open at a time.
	MaxTables int
	// LogKeep bounds the log of changes.
	LogKeep LogKeep
	// Scrub says how tables are read again in the background; not at all by
	// default.
	Scrub Scrub
	// Foreground, if set, is how long requests take: the scrub rests by that.
	Foreground *pause.Foreground
	// Replicated says that others have what is committed, in order, and will give it again: see
	// CommitRecord. The store has no log of its own then, and after a crash it lacks what was
	// not flushed. A commit counts as durable at once.
	Replicated bool

	// The rest is for tests.

	// RowBytes is how much of the cache rows may take, as they come; negative for none.
	RowBytes int64
	// MemTableBytes is the size of Pebble's memtable.
	MemTableBytes uint64
	// BallastBytes is the size of the file that is given up when the disk is
	// full; negative for none.
	BallastBytes int64
	// PriorityRows is how many rows a write adds itself where it brings the first
	// priorities among children; the rest is built in the background.
	PriorityRows int
	// StepChildren is how many children a step of building an index takes in. One that
	// is worked out at its turn takes in a tenth of them, one at least.
	StepChildren int
	// Spread is how many times the bytes of a write its rows may take, above 64 MiB; 0 for any number: see batch.Maker.
	Spread int
	// ManyRows stands for those 64 MiB.
	ManyRows int64
	// GapSteps is how many steps over deleted rows a seek may take before the gap
	// that it passed is remembered.
	GapSteps int
	// Ahead is when rows of a query are read ahead of their reader; never if Each is negative.
	Ahead AheadBounds
	// Gather is how long a flush waits for others before it is merged; it does not if that is negative.
	Gather time.Duration
	// SlowSync, if set, is called before every sync.
	SlowSync func()
}

func (o Options) withDefaults() (Options, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = os.Exit
	}
	if o.ChunkBytes > layout.MaxChunkBytes {
		return o, fmt.Errorf("a chunk limit of %d bytes: at most %d are allowed", o.ChunkBytes, layout.MaxChunkBytes)
	}
	setDefault(&o.ChunkBytes, DefaultChunkBytes)
	o.ChunkBytes = max(o.ChunkBytes, 0)
	setDefault(&o.CacheBytes, DefaultCacheBytes)
	setDefault(&o.RowBytes, o.CacheBytes/rowShare)
	o.RowBytes = min(max(o.RowBytes, 0), o.CacheBytes-o.CacheBytes/memo.Share)
	setDefault(&o.MaxTables, DefaultMaxTables)
	setDefault(&o.MemTableBytes, o.usualMemTable())
	setDefault(&o.BallastBytes, defaultBallastBytes)
	setDefault(&o.PriorityRows, defaultPriorityRows)
	setDefault(&o.StepChildren, defaultStepChildren)
	setDefault(&o.GapSteps, defaultGapSteps)
	setDefault(&o.Gather, gather.Patience)
	setDefault(&o.Ahead, seek.UsualAhead())
	setDefault(&o.LogKeep.Age, time.Hour)
	setDefault(&o.LogKeep.DatabaseBytes, 64<<20)
	setDefault(&o.LogKeep.StoreBytes, 1<<30)
	return o, nil
}

// usualMemTable is the size of the memtable where none is set: a sixteenth of the cache, within
// bounds. The larger it is the more often rows are replaced in memory, and never reach a table. A
// node of a cluster has a small one: its log cannot be trimmed before a flush.
func (o Options) usualMemTable() uint64 {
	if o.Replicated {
		return minMemTableBytes
	}
	return uint64(min(max(o.CacheBytes/memTableShare, minMemTableBytes), maxMemTableBytes))
}

// setDefault gives a number that is zero its default.
func setDefault[T comparable](v *T, value T) { *v = cmp.Or(*v, value) }

// formatMajorVersion is fixed: Pebble's default is its oldest format, in which a
// flipped bit in the log silently loses all that is behind it.
const formatMajorVersion = pebble.FormatTableFormatV6

// cachedMemTables is how many memtables are added to the size of the block cache: the
// one that is written and the one that is flushed. Pebble counts memtables against
// its cache and throws as many blocks out. What memtables take beyond the least size
// is a small part of a large cache, and is taken from it.
const cachedMemTables = 2

// pebbleOptions returns the settings that docs/decisions/001 argues for.
func (s *Store) pebbleOptions(fs vfs.FS) *pebble.Options {
	o := &pebble.Options{
		FS:                          fs,
		FormatMajorVersion:          formatMajorVersion,
		MemTableSize:                s.opts.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		CacheSize:                   s.opts.CacheBytes - s.opts.CacheBytes/memo.Share + cachedMemTables*int64(min(s.opts.MemTableBytes, minMemTableBytes)),
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		FlushDelayDeleteRange:       10 * time.Second,
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             1 << 20,
		DisableWAL:                  s.opts.Replicated,
		MaxOpenFiles:                s.opts.MaxTables,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)/2) },
		Logger:                      pebbleLogger{&s.health},
		EventListener:               s.health.eventListener(),
	}
	o.Experimental.EnableDeleteOnlyCompactionExcises = func() bool { return true }
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
	}
	return o
}

// files returns the files of Pebble, to be read beside it.
func (s *Store) files() inspect.Files {
	options := s.pebbleOptions(s.opts.FS)
	options.EnsureDefaults()
	return inspect.Files{FS: s.opts.FS, Dir: s.dir.PebblePath(), Reader: options.MakeReaderOptions()}
}
