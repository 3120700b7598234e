package assembly

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
)

// TestClockOff: a node knows that its clock is wrong if most others are apart from it, and only then.
func TestClockOff(t *testing.T) {
	t.Parallel()
	const self record.NodeID = 1
	member := func(id record.NodeID, clock time.Duration) membership.Member {
		return membership.Member{ID: id, Up: true, RTT: time.Millisecond, Clock: clock}
	}
	down := membership.Member{ID: 9, Clock: time.Hour}
	tests := []struct {
		name    string
		members []membership.Member
		want    time.Duration
	}{
		{"alone", []membership.Member{member(1, 0)}, 0},
		{"all agree", []membership.Member{member(1, 0), member(2, time.Millisecond), member(3, -time.Second)}, 0},
		{"one other is wrong", []membership.Member{member(1, 0), member(2, 5*time.Minute), member(3, 0)}, 0},
		{"this one is ahead", []membership.Member{member(1, 0), member(2, -5*time.Minute), member(3, -6*time.Minute)}, 5 * time.Minute},
		{"this one is behind", []membership.Member{member(1, 0), member(2, 5*time.Minute), member(3, 5*time.Minute)}, -5 * time.Minute},
		{"of two nobody knows which", []membership.Member{member(1, 0), member(2, time.Minute)}, 0},
		{"this one is in the middle", []membership.Member{member(1, 0), member(2, 5*time.Minute), member(3, -5*time.Minute)}, 0},
		{"all differ, and this one is ahead", []membership.Member{member(1, 0), member(2, -5*time.Minute), member(3, -10*time.Minute)}, 5 * time.Minute},
		{"two and two", []membership.Member{member(1, 0), member(2, time.Second), member(3, time.Hour), member(4, time.Hour)}, 0},
		{"one that is down does not count", []membership.Member{member(1, 0), down, member(3, 0)}, 0},
	}
	for _, test := range tests {
		if got := clockOff(test.members, self, 2*time.Second); got != test.want {
			t.Errorf("%s: the clock is ahead by %v, want %v", test.name, got, test.want)
		}
	}
}
