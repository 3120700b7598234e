package cluster

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
)

// A File is the one that this node's log is in. What is deleted makes room in it for what comes, but does not make it smaller.
type File interface {
	// Size returns how large the file is, and how much of it is in use.
	Size() (file, used int64)
	// Quota is how large the file may grow.
	Quota() int64
	// Full says whether no records are taken here, since this file, or that of another node, has grown too large.
	Full() bool
	// Clear has the log take everything again, until a file is found to be full once more.
	Clear(ctx context.Context) error
	// GiveLead has another node lead the log, if this one does and there is another.
	GiveLead(ctx context.Context) error
	// Defragment makes the file as small as what is in it. The log of this node stands still meanwhile.
	Defragment() error
}

const (
	// spaceEvery is how often a node looks at the file of its log.
	spaceEvery = time.Second
	// spaceTime is how long what it then does may take.
	spaceTime = 10 * time.Second
	// fullBytes is how much stays of a log that is full.
	fullBytes = 64 << 20
)

// turn is the id of a transfer without parts, which the node has that defragments its file: one at a time, since the others must
// be a majority. If the node fails meanwhile the transfer is abandoned as any other.
var turn = record.TransferID([]byte("defragment a log"))

// keepSpace looks at the file of the log, and does what is due.
func (n *Node) keepSpace(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, spaceTime)
	defer cancel()
	full := n.o.File.Full()
	if n.upkeep.full && !full {
		n.upkeep.full = false
		n.o.Logger.Info("the log has room again")
	}
	file, used := n.o.File.Size()
	switch quota := n.o.File.Quota(); {
	case full:
		n.relieve(ctx)
	case file > quota/2 && used < file/2:
		n.defragment(ctx)
	case used > quota/2:
		wake(n.upkeep.flushDue)
		wake(n.upkeep.trimDue)
	}
}

// relieve makes room in a log that is full. Every node does so, whoever is home: no home can be made now. If a
// file has reached its quota, nodes cannot even tell what they have flushed, so the log is cleared each time: a file that is still full then
// is found to be so with the next record.
func (n *Node) relieve(ctx context.Context) {
	if !n.upkeep.full {
		n.o.Logger.Warn("the log is full: it is trimmed and defragmented, and takes no records until then")
	}
	n.upkeep.full = true
	wake(n.upkeep.flushDue)
	keep := min(fullBytes, n.o.KeepBytes)
	if err := n.trimTo(ctx, keep, n.o.KeepFor, keep); err != nil {
		n.o.Logger.Warn("the log was not trimmed", "error", err)
	}
	if file, used := n.o.File.Size(); used < file/4*3 {
		if err := n.o.File.Defragment(); err != nil {
			n.o.Logger.Warn("the file of the log was not defragmented", "error", err)
		}
	}
	if err := n.o.File.Clear(ctx); err != nil {
		n.o.Logger.Warn("the log still takes no records", "error", err)
	}
}

// defragment makes the file smaller, in this node's turn.
func (n *Node) defragment(ctx context.Context) {
	t, err := n.o.Log.Begin(ctx, turn)
	if err != nil {
		return // another node has the turn, or it is not known who has
	}
	defer n.abandon(t)
	if err = n.o.File.GiveLead(ctx); err == nil {
		err = n.o.File.Defragment()
	}
	if err != nil {
		n.o.Logger.Warn("the file of the log was not defragmented", "error", err)
		return
	}
	file, _ := n.o.File.Size()
	n.o.Logger.Info("the file of the log was defragmented", "bytes", file)
}
