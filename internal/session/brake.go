package session

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

const (
	// refusalTime is what a wrong credential is answered after.
	refusalTime = 250 * time.Millisecond
	// maxRefusals is how many wait for such an answer at a time.
	maxRefusals = 8
)

// A Brake holds up those who guess. Who has the right credential never meets it.
type Brake struct{ waiting chan struct{} }

// NewBrake returns a brake at which nobody waits.
func NewBrake() *Brake { return &Brake{waiting: make(chan struct{}, maxRefusals)} }

// Refuse returns when a refusal may be told; false if too many wait for one, which is
// to be told at once.
func (b *Brake) Refuse(ctx context.Context) bool {
	select {
	case b.waiting <- struct{}{}:
	default:
		return false
	}
	defer func() { <-b.waiting }()
	_ = pause.For(ctx, refusalTime) // if it is cut short, nobody hears the answer
	return true
}
