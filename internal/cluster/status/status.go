// Package status is what an operator is told of a cluster: as a value that is printed as JSON for scripts, and as text for people.
package status

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// States of a node.
const (
	Ready   = "ready"
	Joining = "joining" // it has no vote yet
	Behind  = "behind"  // it applies what was written while it was away
	Down    = "down"    // it is not reached
	Leaving = "leaving" // it is about to stop
	Full    = "full"    // it waits for space on its disk
)

// ConditionClock is what a node says of itself if its clock is not that of most others: it serves all the same.
const ConditionClock = "clock"

// States of a replica.
const (
	OK      = "ok"
	Damaged = "damaged" // it does not go on, or differs from the others
)

// A Cluster is what one node knows of its cluster. The names of its fields in JSON do not change.
type Cluster struct {
	ID    string `json:"cluster"`
	Level int    `json:"level"`
	Self  string `json:"self"`
	// Quorum says that a majority of the nodes can be reached, so that there are writes.
	Quorum bool `json:"quorum"`
	// LogLeader is the node whose member leads the log of all shards; empty if none is known.
	LogLeader string   `json:"log_leader"`
	Nodes     []Node   `json:"nodes"`
	Shards    []Shard  `json:"shards"`
	Problems  []string `json:"problems"`
}

// A Node is one node of it.
type Node struct {
	Node    string  `json:"node"`
	Addr    string  `json:"addr"` // where it serves clients; empty if it is not reached
	State   string  `json:"state"`
	Voter   bool    `json:"voter"`
	Leads   int     `json:"leads"` // shards of which it judges the writes
	Version string  `json:"version"`
	Clock   float64 `json:"clock_ms"` // by how much its clock is ahead of that of the node that is asked
	Free    uint64  `json:"free_bytes"`
}

// A Shard is one of the logs.
type Shard struct {
	Shard     int       `json:"shard"`
	Leader    string    `json:"leader"` // the node that judges writes; empty if none is known
	Term      uint64    `json:"term"`
	Committed uint64    `json:"committed"`
	Replicas  []Replica `json:"replicas"`
}

// A Replica is a shard as one node has it.
type Replica struct {
	Node    string `json:"node"`
	Applied uint64 `json:"applied"`
	Digest  string `json:"digest"`
	State   string `json:"state"`
}

// Report is what a node tells the others of itself.
type Report struct {
	Addr    string `json:"addr"`
	Version string `json:"version"`
	Free    uint64 `json:"free"`
	Ready   bool   `json:"ready"`
	// Full says that the node waits for space on its disk, and has entered nothing yet: it tells of no shards.
	Full   bool      `json:"full,omitempty"`
	Shards []Applied `json:"shards"`
	// Settings are hashes of what must be the same on all nodes, by the name of the flag.
	Settings map[string]string `json:"settings,omitempty"`
}

// Applied is how far a node is with a shard.
type Applied struct {
	Number uint64 `json:"number"`
	Digest string `json:"digest"`
	Home   bool   `json:"home,omitempty"`
	Broken string `json:"broken,omitempty"`
}

// Print writes the status for people.
func (c *Cluster) Print(w io.Writer) error {
	word := "no: a majority of the nodes is not reached, nothing can be written"
	if c.Quorum {
		word = "yes"
	}
	committed := uint64(0)
	for _, s := range c.Shards {
		committed += s.Committed
	}
	_, _ = fmt.Fprintf(w, "cluster %s, level %d, asked at %s\nwrites: %s; records: %d; the log is led by %s\n", c.ID, c.Level, c.Self, word, committed, orDash(c.LogLeader))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODE\tSERVES AT\tSTATE\tVOTES\tLEADS\tCLOCK\tFREE\tVERSION")
	for _, n := range c.Nodes {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
			n.Node, orDash(n.Addr), n.State, yes(n.Voter), n.Leads, clock(n), free(n), orDash(n.Version))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(c.Problems) == 0 {
		_, err := fmt.Fprintln(w, "no problems")
		return err
	}
	_, err := fmt.Fprintf(w, "problems:\n  %s\n", strings.Join(c.Problems, "\n  "))
	return err
}

func clock(n Node) string {
	if n.State == Down {
		return "-"
	}
	return fmt.Sprintf("%+.1fms", n.Clock)
}

func free(n Node) string {
	if n.Free == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fGiB", float64(n.Free)/(1<<30))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
