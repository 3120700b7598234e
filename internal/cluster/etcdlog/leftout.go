//go:build no_cluster

package etcdlog

// Linked says whether this binary has etcd in it.
const Linked = false

// WasRemoved is of no use in a binary without a cluster.
func WasRemoved(string) bool { return false }

// Start says that this binary has no cluster.
func Start(Options) (Member, error) { return nil, ErrLeftOut }
