package rest

import (
	"net/http"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
)

// A usage is the memory that one request takes: of the budget for bodies while it is
// read, or of that for answers while it is answered. It takes of one at a time. A long
// read takes turns as well.
type usage struct {
	r               *http.Request
	bodies, answers *budget.Budget
	longReads       *turns

	database string         // that the request is for
	who      *auth.Identity // who asks; filled in when that is known
	claim    *budget.Claim  // nil for none
	// compresses says that the claim includes a compressor.
	compresses bool
}

// newClaim returns a claim of the request, which takes nothing yet.
func (u *usage) newClaim(b *budget.Budget, small bool) *budget.Claim {
	return b.Claim(u.client(), small)
}

// release gives the memory back.
func (u *usage) release() {
	u.claim.Release()
	u.claim, u.compresses = nil, false
}

// ofBody returns the claim of the request's body.
func (u *usage) ofBody(small bool) *budget.Claim {
	if u.claim == nil {
		u.claim = u.newClaim(u.bodies, small)
	}
	return u.claim
}

// chargeAnswer takes memory up to a total from the budget for answers. One that is larger
// than the budget counts as all of it: what was written can be read.
func (u *usage) chargeAnswer(total int64, small bool) error {
	if u.claim != nil && total <= u.claim.Size() {
		return nil
	}
	if u.claim != nil && u.claim.IsSmall() && !small {
		u.release() // it turns out not to be
	}
	if u.claim == nil {
		u.claim = u.newClaim(u.answers, small)
	}
	if !u.claim.Grow(min(total, u.claim.Most())) {
		return fault.New(fault.Unavailable, "too many large answers are under way, try again")
	}
	return nil
}

// chargeContent takes the memory of an answer that is held as a whole, a long string
// perhaps: clients that do not read would otherwise fill the memory with it.
func (u *usage) chargeContent(body content) error {
	size, known := body.Size()
	if !known || size <= smallBody {
		return nil
	}
	return u.chargeAnswer(int64(size), false)
}

// longAnswer is what an answer takes that is sent as it is read: a cursor of the
// store, and buffers on the way to the client.
const longAnswer = 160 << 10

// chargeLong takes the memory of an answer that is longer than is gathered.
func (u *usage) chargeLong() error {
	total := int64(longAnswer)
	if u.compresses {
		total += compressorBytes
	}
	return u.chargeAnswer(total, false)
}

// chargeCompressor takes the memory of a compressor. If there is not enough to spare,
// the answer is sent as it is.
func (u *usage) chargeCompressor() bool {
	if u.claim == nil {
		u.claim = u.newClaim(u.answers, false)
	}
	u.compresses = u.claim.GrowIfSpare(u.claim.Size() + compressorBytes)
	return u.compresses
}
