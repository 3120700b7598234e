package clustercli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/cluster/invite"
	"github.com/livetree/livetree/internal/cluster/status"
)

func (s Surroundings) invite() *cobra.Command {
	c := &cobra.Command{
		Use: "invite", Short: "invite one new node, which then needs no key",
		Long: `livetree cluster invite prints a code. One new node may join with it, once, and until it
ends:

  livetree serve --data DIR --cluster-addr HOST:PORT --cluster-join FILE

FILE holds the code, or LIVETREE_CLUSTER_JOIN does. The node is given the key of the
cluster and keeps it in its data directory. Whoever has the code before it was used can
have the key: pass it on as a secret. A code that went astray is revoked with --revoke ID.` + s.Long,
		Example: "  (umask 077; livetree cluster invite > join)\n  livetree cluster invite --for 10m\n  livetree cluster invite --list\n  livetree cluster invite --revoke 5be1c0ffee5be1c0",
		Args:    s.Takes(),
	}
	o := s.Operator(c.Flags())
	last := cli.Duration(invite.DefaultFor)
	c.Flags().Var(&last, "for", "the `time` that the code is good for")
	list := c.Flags().Bool("list", false, "list the invitations that there are instead")
	revoke := c.Flags().String("revoke", "", "have the invitation with this `id` be good for nobody instead")
	c.MarkFlagsMutuallyExclusive("for", "list", "revoke")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case *list:
			var all status.Invitations
			if err := o.Do(c.Context(), http.MethodGet, "/v1/cluster/invitations", nil, &all); err != nil {
				return err
			}
			return all.Print(o.Out())
		case c.Flags().Changed("revoke"):
			if *revoke == "" {
				return errors.New("--revoke needs the id of an invitation: livetree cluster invite --list shows them")
			}
			if err := o.Do(c.Context(), http.MethodDelete, "/v1/cluster/invitations/"+url.PathEscape(*revoke), nil, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(o.Out(), "revoked %s\n", *revoke)
			return err
		}
		if time.Duration(last) < time.Second {
			return errors.New("--for must be a second at least")
		}
		var made status.Invitation
		request := status.InviteRequest{Seconds: int64(time.Duration(last) / time.Second)}
		if err := o.Do(c.Context(), http.MethodPost, "/v1/cluster/invitations", request, &made); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(s.Err, "invitation %s: good once, until %s\n", made.ID, made.Ends.Local().Format(time.DateTime))
		_, err := fmt.Fprintln(o.Out(), made.Code)
		return err
	}
	return c
}
