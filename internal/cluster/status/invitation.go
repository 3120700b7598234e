package status

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// States of an invitation.
const (
	InviteOpen    = "open"
	InviteUsed    = "used"
	InviteEnded   = "ended"
	InviteRevoked = "revoked"
)

// An Invitation lets one new node have the key of the cluster.
type Invitation struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// Node is where it was made.
	Node   string    `json:"node"`
	Made   time.Time `json:"made"`
	Ends   time.Time `json:"ends"`
	UsedBy string    `json:"used_by,omitempty"`
	// Code is the line that is passed on. It is known only where the invitation is made, and then.
	Code string `json:"code,omitempty"`
}

// Invitations are those that the cluster still knows.
type Invitations struct {
	Invitations []Invitation `json:"invitations"`
}

// InviteRequest asks for an invitation.
type InviteRequest struct {
	// Seconds is how long it is good for; 0 is an hour.
	Seconds int64 `json:"seconds"`
}

// Print writes the invitations for people.
func (all Invitations) Print(w io.Writer) error {
	if len(all.Invitations) == 0 {
		_, err := fmt.Fprintln(w, "there are no invitations")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tSTATE\tMADE AT\tENDS\tUSED BY")
	for _, i := range all.Invitations {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", i.ID, i.State, i.Node, i.Ends.Local().Format(time.DateTime), orDash(i.UsedBy))
	}
	return table.Flush()
}
