// Package etcdlog is the replicated log of a cluster: etcd, embedded in this process, as a driver for
// package shard.
//
// Log, wire, elections and membership are etcd's. It has no client port, no users and no
// settings that are not made here; it is spoken to through its own client inside the process. This is the only
// package that imports etcd. A binary that is built with the tag no_cluster has nothing of it, and
// [Start] says so.
//
// One record is one transaction: if the head of the shard has the revision that the writer knows, put the
// record and the new head. The keys are head/SHARD and log/SHARD/NUMBER, with SHARD one byte and NUMBER eight, big-endian.
package etcdlog

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

var (
	// ErrLeftOut says that this binary was built without the cluster.
	ErrLeftOut = errors.New("this binary was built without the cluster (tag no_cluster)")
	// ErrRemoved says that the cluster has removed this member, which never comes back: a new one may join.
	ErrRemoved = errors.New("the cluster has removed this member")
	// ErrOdd says that two other members have the same in their logs, and this one something else: its files are damaged.
	ErrOdd = errors.New("the log of this node is not that of the others")
	// ErrDiffers says that members have different logs, and that it is not known which is wrong.
	ErrDiffers = errors.New("the logs of nodes differ")
)

// Options say how a member runs.
type Options struct {
	// Dir is where etcd keeps its files.
	Dir string
	// Peer is the address by which the others reach this member, and its name.
	Peer string
	// Listen is where etcd listens for its peers; a front may stand before it.
	Listen string
	// Cluster is the id of the cluster.
	Cluster string
	// Members are the peer addresses to start with, this one's included. A founder gives
	// itself alone, and Founds.
	Members []string
	Founds  bool
	// Alone makes this member the only one, whatever others there were: for when a majority of them is lost for good.
	Alone bool
	// Election is the time after which a silent leader is replaced; a tenth of it is the heartbeat. 0 is
	// DefaultElection.
	Election time.Duration
	// Quota is how large etcd's file may grow. 0 is DefaultQuota.
	Quota int64
	// CheckEvery is how often the leader compares what the members have, after compactions. 0 is etcd's minute.
	CheckEvery time.Duration
	TLS        TLS
	// Fatal is told what etcd cannot go on with. It must end the process: a log that failed must not be used.
	Fatal func(text string)
	Log   *slog.Logger
}

// TLS names the files by which peers know each other. Without a certificate they speak in the clear, which is for
// tests alone.
type TLS struct{ CA, Cert, Key string }

// What is used where Options say nothing.
const (
	DefaultElection = 500 * time.Millisecond
	DefaultQuota    = 4 << 30
)

// A Member is the etcd of this node.
type Member interface {
	shard.Log

	// Stop gives the lead away, if this member has it, and ends when etcd has stopped.
	Stop()
	// Addr is where etcd listens for its peers.
	Addr() string
	// Take has etcd serve a peer on a connection that was accepted elsewhere, and close it when it is over.
	Take(c net.Conn)
	// Failed is told why etcd has ended by itself: ErrRemoved, or an error of its listener.
	Failed() <-chan error

	// ID is that of this member; no other ever has the same.
	ID() uint64
	// Leader is the id of the member that leads, 0 if none is known.
	Leader() uint64
	// MoveLeader hands the lead, which this member has, to another.
	MoveLeader(ctx context.Context, to uint64) error

	// Peers lists the members, as a majority knows them.
	Peers(ctx context.Context) ([]Peer, error)
	// AddLearner makes room for a new member at an address, and returns its id. It has no vote yet.
	AddLearner(ctx context.Context, address string) (uint64, error)
	// Promote gives a learner its vote. It fails while the learner is far behind.
	Promote(ctx context.Context, id uint64) error
	// Remove removes a member, alive or dead.
	Remove(ctx context.Context, id uint64) error

	// Size returns how large etcd's file is, and how much of it is in use.
	Size() (file, used int64)
	// Quota is how large the file may grow.
	Quota() int64
	// Defragment makes the file as small as what is in it. The member stands still meanwhile.
	Defragment() error
	// GiveLead hands the lead to another voter, if this member has it and there is one.
	GiveLead(ctx context.Context) error
	// Full says whether this member takes no records since there is no room for more in its file, or any member has raised the alarm that
	// its file has reached the quota.
	Full() bool
	// Clear ends these alarms. They are raised again if a file is still too large.
	Clear(ctx context.Context) error
	// Raised returns what keeps the cluster from taking records, as this member knows it. It asks no other and costs nothing.
	Raised() []Alarm
	// Disarm ends an alarm.
	Disarm(ctx context.Context, a Alarm) error
}

// A Peer is a member of the cluster as etcd lists it.
type Peer struct {
	ID      uint64
	Address string
	Voter   bool
	// Started is false until the member has said its name.
	Started bool
}

// An Alarm is raised for one member, and counts for all: none takes a record until it is disarmed.
type Alarm struct {
	// Member is 0 if members differ and etcd cannot tell which of them is wrong.
	Member uint64
	// Space says that the file of the member has reached its quota; otherwise the member's file is corrupt: it has not what most others have.
	Space bool
}

// IsCorrupt says whether there is an alarm for a member, or for 0, that says that its file is corrupt.
func IsCorrupt(alarms []Alarm, member uint64) bool {
	return slices.Contains(alarms, Alarm{Member: member})
}
