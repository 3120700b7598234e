package watch

// Limits bound what the watches of one database do at a time. They are no settings:
// every database has the default ones, but tests open some with tiny ones, so that a
// few writes reach what otherwise takes many large ones.
type Limits struct {
	// HeavyBytes is how much is read of the tree for a change at its turn.
	HeavyBytes int
	// MaxObserved is how many assignments of a change are compared with the tree at
	// the change's turn. More count as changes.
	MaxObserved int
	// LeafBytes is how much of leaves is read at the turn of a change that gives them
	// priorities. With more, their watches read the tree again.
	LeafBytes int
	// MaxPending bounds the changes that are visible and not taken by the dispatcher.
	// MaxPendingBytes bounds what all changes take, with what they replaced, from
	// their turn until they are handed on: those that are not synced, those that
	// are visible, and the delivery in hand, all together. Only the change that
	// exceeds it comes on top. With more, all watches read the tree again.
	MaxPending, MaxPendingBytes int
	// MaxMoved is how many children a delivery may change for a window to be moved
	// child by child. With more it is read again.
	MaxMoved int
	// MaxMoving is how many children the dispatcher reads to move the windows of one
	// delivery, about 4 µs each. Further windows are found by their watches; fair.go says
	// which.
	MaxMoving int
	// MaxCounted is how many children the dispatcher counts for a window. Larger ones
	// are measured by a watch.
	MaxCounted int
	// MaxFollowed is how many children may have changed for a measure to be moved.
	// There are no events to be made of them, and counting again takes longer, so it is
	// more than MaxMoved.
	MaxFollowed int
	// Tries is how often a watch tries to begin between two deliveries before it has
	// them wait.
	Tries int
	// Rejudge is how many steps rules take when watches are judged again.
	Rejudge RejudgeBound
	// Resume is how much of the change log is looked through for a watch that goes on.
	Resume ResumeBound
}

// DefaultLimits are those of all databases but some of tests.
func DefaultLimits() Limits {
	return Limits{
		HeavyBytes:      64 << 10,
		MaxObserved:     64,
		LeafBytes:       16 << 20,
		MaxPending:      4096,
		MaxPendingBytes: 64 << 20,
		MaxMoved:        1000,
		MaxMoving:       10_000,
		MaxCounted:      10_000,
		MaxFollowed:     64_000,
		Tries:           maxTries,
		// Together with All, the last judgement stays at about 50 ms. The dispatcher
		// waits for two watches at the gate at most.
		Rejudge: RejudgeBound{Watch: 20_000, Cheap: 400, Expensive: 400_000, All: 600_000, Gate: 200_000},
		Resume:  ResumeBound{Rows: 8192, Bytes: 1 << 20, Told: 512, Kept: 256 << 10},
	}
}

// A RejudgeBound is how many steps rules may take when watches are judged again.
type RejudgeBound struct {
	// Watch is for one watch in the dispatcher. When those of a delivery have taken
	// Expensive steps together, it is Cheap for the rest of them, and when they have
	// taken All, the rest is left unjudged.
	Watch, Cheap, Expensive, All int
	// Gate is for a watch that is judged while no delivery can be taken.
	Gate int
}

// A ResumeBound is how much of the change log is looked through for a watch that
// goes on. A watch that missed more is told what is there now. Looking at a change
// takes 0.3 µs and telling it 7 µs, so to go on takes some milliseconds at most.
type ResumeBound struct {
	Rows  uint64 // changes that are looked at
	Bytes int64  // of their rows
	Told  int    // changes that are told
	// Kept is how many bytes of events are kept at a time. The rest is read when
	// they were taken.
	Kept int
	// looking, if set, is called while the log is looked through. It is for tests.
	looking func()
}
