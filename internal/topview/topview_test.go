package topview_test

import (
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/topview"
)

// lineOf returns the line of a frame that begins with a word, or nothing.
func lineOf(f topview.Frame, word string) string {
	for _, line := range f.Lines(time.Unix(0, 0)) {
		if strings.HasPrefix(line, word+" ") {
			return line
		}
	}
	return ""
}

// TestTriggers: there is a line for webhooks if there are any, and one for expiry if something expires.
func TestTriggers(t *testing.T) {
	t.Parallel()
	many := admin.HookTotals{Hooks: 9, Delivered: 110, Pending: 4, Lag: 61.25, Failed: 2, Skipped: 1, Failing: 3, Names: []string{"shop/a", "shop/\x1b[31mb"}}
	for name, test := range map[string]struct {
		before, now   *admin.Triggers
		hooks, expiry string
	}{
		"no triggers": {},
		"idle":        {now: &admin.Triggers{Expiry: admin.ExpiryTotals{Deleted: 7, Failures: 1}}},
		"a hook": {
			now:   &admin.Triggers{Hooks: admin.HookTotals{Hooks: 1, Delivered: 5}},
			hooks: "hooks     1  0/s delivered  0 wait  lag 0.0 s  0 given up  0 skipped",
		},
		"hooks that fail": {
			before: &admin.Triggers{Hooks: admin.HookTotals{Hooks: 9, Delivered: 10}}, now: &admin.Triggers{Hooks: many},
			hooks: "hooks     9  3 FAILING: shop/a, shop/\\u001b[31mb and 1 more  50/s delivered  4 wait  lag 61.2 s  2 given up  1 skipped",
		},
		"deletes": {
			before: &admin.Triggers{Expiry: admin.ExpiryTotals{Deleted: 100}}, now: &admin.Triggers{Expiry: admin.ExpiryTotals{Deleted: 500}},
			expiry: "expiry    200/s deleted  lag 0.0 s in 0 databases  0 failures",
		},
		"late": {
			now:    &admin.Triggers{Expiry: admin.ExpiryTotals{DueDatabases: 2, Lag: 3.5}},
			expiry: "expiry    0/s deleted  lag 3.5 s in 2 databases  0 failures",
		},
		"failures": {
			before: &admin.Triggers{}, now: &admin.Triggers{Expiry: admin.ExpiryTotals{Failures: 1}},
			expiry: "expiry    0/s deleted  lag 0.0 s in 0 databases  1 failures",
		},
		"another start": { // its counts begin again
			before: &admin.Triggers{Expiry: admin.ExpiryTotals{Deleted: 100}}, now: &admin.Triggers{Expiry: admin.ExpiryTotals{Deleted: 5}},
		},
	} {
		f := topview.Frame{Status: admin.Status{Triggers: test.now}, Before: admin.Status{Triggers: test.before}, Operations: admin.Report{Seconds: 2}}
		if got := lineOf(f, "hooks"); got != test.hooks {
			t.Errorf("%s: the line is %q, want %q", name, got, test.hooks)
		}
		if got := lineOf(f, "expiry"); got != test.expiry {
			t.Errorf("%s: the line is %q, want %q", name, got, test.expiry)
		}
	}
}
