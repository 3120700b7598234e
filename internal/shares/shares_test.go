package shares_test

import (
	"testing"

	"github.com/livetree/livetree/internal/shares"
)

// TestShares: a session, a group and all groups have bounds, and the operator a place beside
// them.
func TestShares(t *testing.T) {
	t.Parallel()
	s := shares.New(shares.Bound{Session: 1, Group: 2, All: 3})
	leave := map[string]func(){}
	for _, step := range []struct {
		session, group string
		want           bool
	}{
		{"s1", "shop", true},
		{"s1", "shop", false}, // the session has its one
		{"s2", "shop", true},
		{"s3", "shop", false}, // the group has its two
		{"b1", "blog", true},
		{"b2", "blog", false}, // all have their three
		{"o1", "", true},
		{"o1", "", false},
		{"o2", "", true},
		{"o3", "", false}, // the operator has two
	} {
		out, ok := s.Enter(shares.Who{Session: step.session, Group: step.group})
		if ok != step.want {
			t.Errorf("Enter(%q of %q) = %v, want %v", step.session, step.group, ok, step.want)
		}
		if ok {
			leave[step.session] = out
		}
	}
	leave["s1"]()
	leave["s1"]() // once is enough
	if _, ok := s.Enter(shares.Who{Session: "b2", Group: "blog"}); !ok {
		t.Error("a place that was given back is not there")
	}
	if _, ok := s.Enter(shares.Who{Session: "b3", Group: "news"}); ok {
		t.Error("a place was given back twice")
	}
}
