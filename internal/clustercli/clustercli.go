// Package clustercli is the command livetree cluster: it asks the admin listener of a node how its cluster is, and has it
// changed.
package clustercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/pause"
)

// An Operator asks the admin listener.
type Operator struct {
	// Do makes a request and reads the answer into a value, which may be nil.
	Do func(ctx context.Context, method, path string, request, into any) error
	// Out is where text for people goes; nothing does if they asked for JSON.
	Out func() io.Writer
}

// Surroundings are what the command has from the program that it is part of.
type Surroundings struct {
	// Operator declares the flags by which the listener is found.
	Operator func(*pflag.FlagSet) Operator
	// Takes bounds the arguments of a command by their names.
	Takes func(names ...string) cobra.PositionalArgs
	// Long ends the long help of the commands that ask the listener.
	Long string
	// Out is the standard output, Err that for notes beside it, Data the usual data directory, and Logger is told what happens.
	Out    io.Writer
	Err    io.Writer
	Data   string
	Logger func() *slog.Logger
}

// Commands returns the commands below livetree cluster.
func Commands(s Surroundings) []*cobra.Command {
	return []*cobra.Command{s.status(), s.remove(), s.leave(), s.move(), s.doctor(), s.key(), s.invite(), s.recover()}
}

func (s Surroundings) status() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "say whether the cluster is well, and what to do if not",
		Long:    "livetree cluster status says which nodes there are, which of them are up and how far, and\nwhat is wrong." + s.Long,
		Example: "  livetree cluster status\n  livetree cluster status --json\n  livetree cluster status --watch",
		Args:    s.Takes(),
	}
	o := s.Operator(c.Flags())
	watch := c.Flags().Bool("watch", false, "say it again every two seconds")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for {
			var told status.Cluster
			if err := o.Do(c.Context(), http.MethodGet, "/v1/cluster", nil, &told); err != nil {
				return err
			}
			if err := told.Print(o.Out()); err != nil || !*watch {
				return err
			}
			if pause.For(c.Context(), 2*time.Second) != nil {
				return nil
			}
		}
	}
	return c
}

func (s Surroundings) remove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove HOST:PORT", Short: "remove a node, alive or dead",
		Long: `livetree cluster remove takes a node out of the cluster for good. It refuses what would
leave no majority of nodes that are up. The node may come back with an empty data
directory.` + s.Long,
		Example: "  livetree cluster remove 10.0.0.3:9100",
		Args:    s.Takes("HOST:PORT"),
	}
	o := s.Operator(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.Do(c.Context(), http.MethodPost, "/v1/cluster/remove", admin.NodeRequest{Node: args[0]}, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(o.Out(), "removed %s\n", args[0])
		return err
	}
	return c
}

func (s Surroundings) leave() *cobra.Command {
	c := &cobra.Command{
		Use: "leave", Short: "take this node out of the cluster, and stop it",
		Long: `livetree cluster leave takes the node that it asks out of the cluster for good, in order:
what the node leads is handed over, what it is answering is answered, then it is removed,
and its server ends with exit code 0. It refuses what would leave no majority of nodes
that are up; nothing has happened then. The data directory is not needed any more: to
join again, the node starts with an empty one.

There is no way to force it: a node that must go while others are down is stopped, and
removed when they are up again.` + s.Long,
		Example: "  livetree cluster leave",
		Args:    s.Takes(),
	}
	o := s.Operator(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.Do(c.Context(), http.MethodPost, "/v1/cluster/leave", nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintln(o.Out(), "left: the server has stopped, and its data directory is not needed any more")
		return err
	}
	return c
}

// errFindings has the command fail: what is wrong was printed.
var errFindings = errors.New("the doctor has found something")

func (s Surroundings) doctor() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "find what is wrong with the cluster, and say what to do",
		Long: `livetree cluster doctor has all nodes examine themselves and compares them: which nodes
are down or behind, whether each reaches all others, whether their data and settings are
the same, clocks, versions, free space, how fast the disks sync, certificates that end
soon, who may read the key, alarms of the log. Each finding is a line that says what to
do. The exit code is 0 if nothing was found, and 1 if something was.` + s.Long,
		Example: "  livetree cluster doctor\n  livetree cluster doctor --json",
		Args:    s.Takes(),
	}
	o := s.Operator(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		var told status.Diagnosis
		if err := o.Do(c.Context(), http.MethodGet, "/v1/cluster/doctor", nil, &told); err != nil {
			return err
		}
		if err := told.Print(o.Out()); err != nil {
			return err
		}
		if n := len(told.Findings); n > 0 {
			return fmt.Errorf("%w: %d findings", errFindings, n)
		}
		return nil
	}
	return c
}

func (s Surroundings) move() *cobra.Command {
	c := &cobra.Command{
		Use: "move [HOST:PORT]", Short: "have other nodes lead what this one does",
		Long:    "livetree cluster move gives the shards of which this node judges the writes to another\nnode, or to several: before work on its machine." + s.Long,
		Example: "  livetree cluster move",
		Args:    s.Takes("[HOST:PORT]"),
	}
	o := s.Operator(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		var request admin.NodeRequest
		if len(args) > 0 {
			request.Node = args[0]
		}
		if err := o.Do(c.Context(), http.MethodPost, "/v1/cluster/move", request, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintln(o.Out(), "moved")
		return err
	}
	return c
}

func (s Surroundings) recover() *cobra.Command {
	var data string
	var yes bool
	c := &cobra.Command{
		Use: "recover", Short: "make one node's copy a single server's, when a majority is lost for good",
		Long: `livetree cluster recover is the last resort, for when the disks of a majority of the
nodes are lost for good. It makes the data directory of a node that is left that of a
single server, with all that this node has. What the others have acknowledged and this
node has not received is lost. If nodes can still be started, start them instead: nothing
is lost then.

Take the node that is furthest, stop it, and keep a copy of its directory. The other
nodes of the old cluster must never be started again with what they have. From the single
server a new cluster is founded as from any other. Streams start again.`,
		Example: "  livetree cluster recover --data ./livetree-data\n  livetree cluster recover --data ./livetree-data --yes-lose-data",
		Args:    s.Takes(),
	}
	c.Flags().StringVar(&data, "data", s.Data, "the data `directory` of the node, which must be stopped")
	c.Flags().BoolVar(&yes, "yes-lose-data", false, "accept that what this node has not received is lost for good")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !membership.IsNode(data) {
			return fmt.Errorf("%s is not the directory of a node of a cluster", data)
		}
		if err := membership.CheckLeft(data); err != nil {
			return err
		}
		if !yes {
			return fmt.Errorf("nothing was done: if a majority of the nodes of %s is lost for good, and you accept that what this one has not received is lost, say so with --yes-lose-data", data)
		}
		if err := assembly.Recover(c.Context(), data, time.Now, s.Logger()); err != nil { //nolint:forbidigo // the command has no other clock
			return err
		}
		_, err := fmt.Fprintf(s.Out, "%s is the directory of a single server now: livetree serve --data %s\n", data, data)
		return err
	}
	return c
}

func (s Surroundings) key() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "make a key for a new cluster",
		Long:    "livetree cluster key prints a new key. Whoever has it is a node: keep it in a file that\nonly the server can read, the same on all nodes.",
		Example: "  (umask 077; livetree cluster key > cluster.key)",
		Args:    s.Takes(),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(s.Out, peer.NewKey())
			return err
		},
	}
}
