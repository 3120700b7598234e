package seek

import (
	"math"
	"sync/atomic"

	"github.com/livetree/livetree/internal/store/layout"
)

// hints remember at what depth chunks were found, by the depth and the first key
// of what they were found for. They are guesses, also about each other's
// locations.
type hints [256]atomic.Uint32

// splitHint says that there was no chunk, but a split node.
const splitHint = math.MaxUint32

func (h *hints) of(l layout.Location) *atomic.Uint32 {
	shape := uint32(l.Depth())
	for _, c := range l.At(min(1, l.Depth()))[1:] { // the database and the first key
		shape = shape*31 + uint32(c)
	}
	return &h[shape%uint32(len(h))]
}
