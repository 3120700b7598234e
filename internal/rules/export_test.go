package rules

import (
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// NewOverlay is the state after a write.
func NewOverlay(before Data, w tree.Write) expr.Data { return newOverlay(before, w) }

const (
	MaxReads = maxReads
	MaxTrace = maxTrace
)
