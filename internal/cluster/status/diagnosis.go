package status

import (
	"fmt"
	"io"
)

// A Finding is something that is wrong, and what to do about it.
type Finding struct {
	// Node is where it was found; empty for what is of all.
	Node  string `json:"node,omitempty"`
	Check string `json:"check"`
	Text  string `json:"finding"`
	Do    string `json:"do"`
}

// An Examination is what a node finds out about itself.
type Examination struct {
	Findings []Finding `json:"findings,omitempty"`
	// Unreached are the nodes that it does not reach, and why.
	Unreached map[string]string `json:"unreached,omitempty"`
	// SyncMillis is how long a sync of its disk takes.
	SyncMillis float64 `json:"sync_ms"`
}

// A Diagnosis is what a doctor says of a cluster. The names of its fields in JSON do not change.
type Diagnosis struct {
	ID       string    `json:"cluster"`
	Self     string    `json:"self"`
	Nodes    int       `json:"nodes"`
	Examined int       `json:"examined"`
	Findings []Finding `json:"findings"`
}

// Print writes it for people, one finding a line.
func (d *Diagnosis) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "cluster %s, asked at %s: %d of %d nodes examined\n", d.ID, d.Self, d.Examined, d.Nodes)
	for _, f := range d.Findings {
		where := ""
		if f.Node != "" {
			where = f.Node + ": "
		}
		if _, err = fmt.Fprintf(w, "%s%s: %s\n", where, f.Text, f.Do); err != nil {
			return err
		}
	}
	if len(d.Findings) == 0 {
		_, err = fmt.Fprintln(w, "nothing is wrong")
	}
	return err
}
