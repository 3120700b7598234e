//go:build !no_cluster

package etcdlog

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/pkg/v3/pbutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// openTime is how long a file is waited for that another process has open.
const openTime = 5 * time.Second

// WasRemoved says whether the files in a directory are those of a member that knows that it was removed. etcd panics if such a member is to go on alone. No
// process may have the directory open. What cannot be read is not known: etcd says of its files itself what is wrong with them.
func WasRemoved(dir string) (removed bool) {
	defer func() {
		if recover() != nil { // etcd's own way to say that it cannot read a file
			removed = false
		}
	}()
	id, members, err := membersInLog(dir)
	return err == nil && (!slices.Contains(members, id) || removedInFile(dir, id))
}

// membersInLog returns the id of a member, and the members that there are after all that it knows to be committed.
func membersInLog(dir string) (id uint64, members []uint64, err error) {
	logger, walDir := zap.NewNop(), filepath.Join(dir, "member", "wal")
	snapshots, err := wal.ValidSnapshotEntries(logger, walDir)
	if err != nil {
		return 0, nil, err
	}
	from := &walpb.Snapshot{}
	snapshot, err := snap.New(logger, filepath.Join(dir, "member", "snap")).LoadNewestAvailable(snapshots)
	if err == nil {
		from.Index, from.Term = new(snapshot.GetMetadata().GetIndex()), new(snapshot.GetMetadata().GetTerm())
	}
	w, err := wal.OpenForRead(logger, walDir, from)
	if err != nil {
		return 0, nil, err
	}
	metadata, state, entries, err := w.ReadAll()
	if _ = w.Close(); err != nil { // it was only read
		return 0, nil, err
	}
	var own etcdserverpb.Metadata
	pbutil.MustUnmarshalMessage(&own, metadata)
	for i, e := range entries {
		if e.GetIndex() > state.GetCommit() {
			entries = entries[:i]
			break
		}
	}
	return own.GetNodeID(), storage.GetEffectiveNodeIDsFromWALEntries(logger, snapshot, entries), nil
}

// removedInFile says whether a member is among the removed ones in etcd's file, which may know more than is known to be committed in the log.
func removedInFile(dir string, id uint64) bool {
	logger, name := zap.NewNop(), filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(name); err != nil {
		return false // it would be made
	}
	file := backend.NewDefaultBackend(logger, name, backend.WithTimeout(openTime))
	defer func() { _ = file.Close() }() // it was only read
	_, removed := schema.NewMembershipBackend(logger, file).MustReadMembersFromBackend()
	return removed[types.ID(id)]
}
