//go:build !no_cluster

package etcdlog

import (
	"context"
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// SetFlushed implements [shard.Flushes]. It goes around etcd's client, which takes no put once the file has reached its quota: without this one the log could not be
// trimmed. etcd itself takes it as long as there is no alarm.
func (m *member) SetFlushed(ctx context.Context, f shard.Flushed) error {
	ctx, done := m.bounded(ctx, 0)
	defer done()
	put := &pb.PutRequest{Key: []byte(nodeKey(f.Node)), Value: f.Append(nil)}
	return changeRow(ctx, m, f, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
}

// ForgetFlushed implements [shard.Flushes].
func (m *member) ForgetFlushed(ctx context.Context, f shard.Flushed) error {
	ctx, done := m.bounded(ctx, 0)
	defer done()
	remove := &pb.DeleteRangeRequest{Key: []byte(nodeKey(f.Node))}
	return changeRow(ctx, m, f, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: remove}})
}

// changeRow changes what a node has said, if that has still the revision of f.
func changeRow(ctx context.Context, m *member, f shard.Flushed, change *pb.RequestOp) error {
	answer, err := m.etcd.Server.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: []byte(nodeKey(f.Node)), Result: pb.Compare_EQUAL, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: f.Revision},
		}},
		Success: []*pb.RequestOp{change},
	})
	if err != nil {
		return outcome(err)
	}
	if !answer.Succeeded {
		return shard.ErrStale
	}
	return nil
}

// Flushed implements [shard.Flushes] by a read that etcd confirms with a majority.
func (m *member) Flushed(ctx context.Context) (rows []shard.Flushed, err error) {
	ctx, done := m.bounded(ctx, 0)
	defer done()
	answer, err := m.get(ctx, nodePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	for _, kv := range answer.Kvs {
		if len(kv.Key) != len(nodePrefix)+8 {
			return nil, fmt.Errorf("%w: a node at %q", shard.ErrDamaged, kv.Key)
		}
		row, err := shard.ParseFlushed(kv.Value)
		if err != nil {
			return nil, err
		}
		row.Node, row.Revision = record.NodeID(binary.BigEndian.Uint64(kv.Key[len(nodePrefix):])), kv.ModRevision
		rows = append(rows, row)
	}
	return rows, nil
}
