package assembly

import (
	"fmt"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
)

// This file compares the clocks of nodes, which are measured with each ping. No promise rests on them: the time of commits never goes back,
// whichever node judges them. But it stands still while the clock of the home is behind.

const (
	// clockTolerance is how far clocks may be apart before an operator is told, clockLimit before a node judges no more writes.
	clockTolerance = 2 * time.Second
	clockLimit     = time.Minute
)

// middleClock returns by how much the middle one of all clocks that a node has measured, and its own, is ahead of its own. Of two in the middle
// it is the one that is nearer: only a majority can say that a clock is wrong.
func middleClock(members []membership.Member, self record.NodeID) time.Duration {
	clocks := []time.Duration{0}
	for _, m := range members {
		if m.ID != self && m.Up && m.RTT > 0 {
			clocks = append(clocks, m.Clock)
		}
	}
	slices.Sort(clocks)
	below, above := clocks[(len(clocks)-1)/2], clocks[len(clocks)/2]
	if below.Abs() < above.Abs() {
		return below
	}
	return above
}

// clockOff returns by how much the clock of a node is ahead of the middle one, if that is beyond a bound; else 0. It tells a node that is wrong from one that only
// sees a wrong one.
func clockOff(members []membership.Member, self record.NodeID, bound time.Duration) time.Duration {
	if middle := middleClock(members, self); middle.Abs() > bound {
		return -middle
	}
	return 0
}

// clockProblems says whose clock is wrong, as this node sees it.
func clockProblems(a *Assembly, members []membership.Member) (problems []string) {
	if ahead := clockOff(members, a.node.ID(), clockTolerance); ahead != 0 {
		return []string{fmt.Sprintf("the clock of %s differs by %s from those of the other nodes: check the time service of its machine", a.o.Addr, ahead.Abs().Round(time.Second))}
	}
	for _, m := range members {
		if apart := m.Clock.Abs(); m.Up && apart > clockTolerance {
			problems = append(problems, fmt.Sprintf("the clock of %s differs by %s from that of %s: check the time service of both machines", m.Addr, apart.Round(time.Second), a.o.Addr))
		}
	}
	return problems
}
