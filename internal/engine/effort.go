package engine

import (
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Rules take as long as a rules document and the data that it looks at make them take.
// Where others wait for a judgement it has only so many steps, of about 50 ns. A
// judgement that takes more is made again where nobody waits for it.
const (
	// turnSteps is for the turn of a write.
	turnSteps = 20_000
	// lateTurnSteps is for the turn of a write that was prepared in vain maxRounds
	// times, because the data that its rules look at keeps changing.
	lateTurnSteps = 400_000
)

// numbers is a tree for increments, which do not add to strings, however long those
// are.
type numbers struct{ store.Tree }

// Look implements tree.Looker.
func (n numbers) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	return n.LookNumber(p)
}
