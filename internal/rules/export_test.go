package rules

import (
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// NewOverlay is the state after a write.
func NewOverlay(before Data, w tree.Write) expr.Data {
	o := &overlay{}
	o.set(before, w)
	return o
}

const (
	MaxReads = maxReads
	MaxTrace = maxTrace
)

// WithSteps returns the request with so many steps for its rules, beside those for the
// bytes of a write.
func (r Request) WithSteps(n int) Request {
	r.steps = n
	return r
}
