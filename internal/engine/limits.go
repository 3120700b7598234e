package engine

import (
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/watch"
)

// Limits bound what one database does at a time. They are no settings: every
// database has the default ones, but tests open some with tiny ones, so that a few
// writes reach what otherwise takes many large ones.
type Limits struct {
	// MaxQueued is how many writes may wait for their turn; more are refused.
	MaxQueued int
	// HeavyBytes is how much a write may read or encode at its turn. More is
	// done before it.
	HeavyBytes int
	// HeavyPaths is how many assignments of a write are judged at its turn. More are
	// judged before it, if that stands until then.
	HeavyPaths int
	// MaxRounds is how often what was done before a write's turn is done again
	// because the data changed meanwhile.
	MaxRounds int
	// RecentChanges is how many changes are remembered, at least, to check what was
	// prepared, and MaxTouched how many paths of one change one by one.
	RecentChanges, MaxTouched int
	// Leave bounds what a connection leaves to be written.
	Leave leave.Limits
	// LeftPage is how many names of connections RunLeft holds at a time.
	LeftPage int
	// ExpireChildren is how many children a step deletes whose time is over while other databases
	// wait, ExpireWindow how many it looks for while none does, ExpireBytes how many bytes their
	// keys take, about, and ExpireTurn how many of them go at one turn of the writer.
	ExpireChildren, ExpireWindow, ExpireBytes, ExpireTurn int
	// GroupBytes is how large a group may be before it is closed: see Log.
	GroupBytes int
	// Hooks bounds what a commit is to webhooks.
	Hooks hook.Limits
	// Watch bounds the watches.
	Watch watch.Limits
}

// usualLimits are those of all databases but some of tests. They do not change.
var usualLimits = func() *Limits { l := DefaultLimits(); return &l }()

// DefaultLimits are those of every database but some of tests.
func DefaultLimits() Limits {
	return Limits{
		MaxQueued:     4096,
		HeavyBytes:    64 << 10,
		HeavyPaths:    256,
		MaxRounds:     3,
		RecentChanges: 256,
		MaxTouched:    16,
		Leave:         leave.DefaultLimits(),
		LeftPage:      1024,
		Hooks:         hook.DefaultLimits(),

		GroupBytes: 256 << 10,

		ExpireChildren: 256,
		ExpireWindow:   16 << 10,
		ExpireBytes:    2 << 20,
		ExpireTurn:     32,

		Watch: watch.DefaultLimits(),
	}
}
