package serverflags

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/server"
)

// Archive declares the flags of the archive.
func Archive(flags *pflag.FlagSet, a *server.Archive) {
	a.Keep, a.Spool, a.PastBytes = server.DefaultArchiveKeep, server.DefaultArchiveSpool, server.DefaultPastBytes
	flags.StringVar(&a.URL, "archive", "", "the `URL` that every commit is sent to: file:///DIRECTORY on another disk, or s3://BUCKET/PREFIX; nowhere if empty")
	flags.StringVar(&a.Endpoint, "archive-endpoint", "", "the `URL` of the S3 service; that of AWS if empty")
	flags.StringVar(&a.Region, "archive-region", "", "the `region` of the bucket")
	flags.StringVar(&a.Credentials, "archive-credentials", "", "a `file` with the credential of the bucket, as AWS has them; else AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	flags.Var((*cli.Duration)(&a.Keep), "archive-keep", "the `time` that the archive reaches back")
	flags.Var((*cli.ByteSize)(&a.Spool), "archive-spool", "the `size` of the records that wait on disk at most, while the archive cannot be reached")
	flags.Var((*cli.ByteSize)(&a.PastBytes), "past-size", "the `size` of the views of the past on disk at most, in all")
	flags.Var((*cli.List)(&a.Recipients), "archive-recipient", "a public `key` of age that the archive is encrypted to; repeatable")
	flags.StringVar(&a.Identities, "archive-identity", "", "a `file` with a secret key of age, for reading the past of an encrypted archive")
}

// Cluster declares the flags of a node of a cluster.
func Cluster(flags *pflag.FlagSet, c *server.Cluster) {
	c.Reads, c.LogBytes, c.Election = "linearizable", server.DefaultClusterLog, server.DefaultClusterElection
	flags.Var((*cli.List)(&c.List), "cluster", "the addresses `HOST:PORT,...` of the nodes of a cluster, the same on all; a single server if empty")
	flags.StringVar(&c.Addr, "cluster-addr", "", "the `HOST:PORT` by which the other nodes reach this one")
	flags.StringVar(&c.Listen, "cluster-listen", "", "the `HOST:PORT` where it listens for them, if that differs")
	flags.Var(clusterKey{c}, "cluster-key", "the `file` with the key of the cluster, which livetree cluster key makes; LIVETREE_CLUSTER_KEY may also be the key itself")
	flags.Var(clusterJoin{c}, "cluster-join", "the `file` with an invitation to a cluster, which livetree cluster invite makes, or - for the standard input; instead of --cluster and --cluster-key; LIVETREE_CLUSTER_JOIN may also be the invitation itself")
	flags.StringVar(&c.Reads, "reads", c.Reads, "what a node of a cluster shows, a `word`: linearizable for all that was acknowledged anywhere, local for what it has")
	flags.Var((*cli.ByteSize)(&c.LogBytes), "cluster-log", "the `size` of the log of the cluster, beyond which a node that is away must start from a copy")
	flags.Var((*cli.Duration)(&c.Election), "cluster-election", "the `time` after which the nodes replace a leader that is silent; 3s across regions")
}

// A clusterKey is the file with the key of a cluster. In the environment it may be the key itself, which is never shown.
type clusterKey struct{ *server.Cluster }

// String implements pflag.Value, as the methods below do.
func (k clusterKey) String() string {
	if k.Cluster == nil {
		return ""
	}
	if k.Key != "" {
		return "(hidden)"
	}
	return k.KeyFile
}

// Type names the value.
func (clusterKey) Type() string { return "string" }

// Set takes a file, or a key.
func (k clusterKey) Set(text string) error {
	k.Key, k.KeyFile = "", text
	if _, err := peer.ParseKey(text); err == nil {
		k.Key, k.KeyFile = text, ""
	}
	return nil
}

// A clusterJoin is the file with an invitation. In the environment it may be the invitation itself, which is never shown.
type clusterJoin struct{ *server.Cluster }

// String implements pflag.Value, as the methods below do.
func (j clusterJoin) String() string {
	if j.Cluster == nil {
		return ""
	}
	if j.Invitation != "" {
		return "(hidden)"
	}
	return j.JoinFile
}

// Type names the value.
func (clusterJoin) Type() string { return "string" }

// Set takes a file, or an invitation.
func (j clusterJoin) Set(text string) error {
	j.Invitation, j.JoinFile = "", text
	if peer.IsCode(text) {
		j.Invitation, j.JoinFile = text, ""
	}
	return nil
}

// CheckJoin refuses an invitation on the command line, which other users of the machine can see.
func CheckJoin(flags *pflag.FlagSet, c server.Cluster) error {
	if origin, _ := cli.Origin(flags.Lookup("cluster-join")); origin == cli.OriginFlag && c.Invitation != "" {
		return errors.New("--cluster-join takes a file: other users of this machine can see what is on the command line; put the invitation into a file, or into LIVETREE_CLUSTER_JOIN, and make another if they must not have this one")
	}
	return nil
}

// Hooks declares the flags of webhooks.
func Hooks(flags *pflag.FlagSet, h *server.Hooks) {
	h.Spool, h.RetryFor = server.DefaultHookSpool, server.DefaultHookRetry
	flags.Var((*cli.List)(&h.Allow), "hook-allow", "a `host`, an address or a network, perhaps with a port, that webhooks may reach although it is not on the public Internet, and by http; repeatable")
	flags.Var(positive[cli.ByteSize]{(*cli.ByteSize)(&h.Spool), (*cli.ByteSize)(&h.Spool)}, "hook-spool", "the `size` of what waits on disk for the receivers of webhooks at most; past it the oldest is dropped")
	flags.Var(positive[cli.Duration]{(*cli.Duration)(&h.RetryFor), (*cli.Duration)(&h.RetryFor)}, "hook-retry", "the `time` for which a delivery of a webhook is tried until it is given up")
}

// positive is a flag that refuses 0, which would be taken for the default.
type positive[T ~int64] struct {
	pflag.Value
	number *T
}

// Set implements pflag.Value.
func (p positive[T]) Set(text string) error {
	was := *p.number
	if err := p.Value.Set(text); err != nil {
		return err
	}
	if *p.number <= 0 {
		*p.number = was
		return errors.New("it must be more than 0")
	}
	return nil
}

// Trust is whose tokens are accepted, and for whom they must be.
type Trust struct {
	Issuers, Audiences cli.List
	Keys               string
}

// List returns the issuers.
func (t Trust) List() ([]auth.Issuer, error) {
	if t.Keys != "" && len(t.Issuers) != 1 {
		return nil, errors.New("--jwks is the keys of one --issuer")
	}
	var all []auth.Issuer
	for _, url := range t.Issuers {
		all = append(all, auth.Issuer{URL: url, Audiences: t.Audiences, JWKS: t.Keys})
	}
	return all, nil
}
