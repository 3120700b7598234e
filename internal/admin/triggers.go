package admin

import (
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/state"
)

// Triggers say what the server does by itself: it delivers to webhooks, and deletes what has expired.
type Triggers struct {
	Hooks  HookTotals   `json:"hooks"`
	Expiry ExpiryTotals `json:"expiry"`
}

// HookTotals are what all webhooks have done since the server was started, and what they have to do.
type HookTotals struct {
	Hooks     int    `json:"hooks"`
	Delivered uint64 `json:"delivered"`
	Failed    uint64 `json:"failed"`
	Skipped   uint64 `json:"skipped"`
	Pending   int64  `json:"pending"`
	// Lag is that of the hook that is furthest behind, in seconds.
	Lag float64 `json:"lag"`
	// Failing is how many fail, of which Names has the first ones, each with its database.
	Failing int      `json:"failing"`
	Names   []string `json:"names,omitempty"`
}

// ExpiryTotals are how many children were deleted since the server was started as their time was over, and
// how late the oldest is that is not deleted yet.
type ExpiryTotals struct {
	Deleted      uint64  `json:"deleted"`
	Failures     uint64  `json:"failures"`
	DueDatabases int     `json:"due_databases"`
	Lag          float64 `json:"lag"`
}

// maxFailingNames is how many webhooks that fail are named.
const maxFailingNames = 5

func triggersOf(hooks []deliver.Stat, m *state.Metrics) *Triggers {
	t := &Triggers{Hooks: HookTotals{Hooks: len(hooks)}}
	for _, s := range hooks {
		t.Hooks.add(s)
	}
	if m != nil {
		databases, by := m.LateNow()
		t.Expiry = ExpiryTotals{Deleted: m.Expired.Load(), Failures: m.ExpiryFailures.Load(), DueDatabases: databases, Lag: by.Seconds()}
	}
	return t
}

func (t *HookTotals) add(s deliver.Stat) {
	t.Delivered, t.Failed, t.Skipped = t.Delivered+s.Delivered, t.Failed+s.Failed, t.Skipped+s.Skipped
	t.Pending, t.Lag = t.Pending+s.Pending, max(t.Lag, s.Lag)
	if !s.Failing {
		return
	}
	t.Failing++
	if len(t.Names) < maxFailingNames {
		t.Names = append(t.Names, s.Database+"/"+s.Hook)
	}
}
