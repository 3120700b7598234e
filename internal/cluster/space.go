package cluster

// A File is the one that the log of this node is in.
type File interface {
	// Quota is how large the file may grow.
	Quota() int64
}
