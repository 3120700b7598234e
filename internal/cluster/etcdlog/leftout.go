//go:build no_cluster

package etcdlog

// Start says that this binary has no cluster.
func Start(Options) (Member, error) { return nil, ErrLeftOut }
