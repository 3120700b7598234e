//go:build !no_cluster

package etcdlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// SetFlushed implements [shard.Flushes].
func (m *member) SetFlushed(ctx context.Context, f shard.Flushed) error {
	key := nodeKey(f.Node)
	_, err := m.change(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", f.Revision)}, clientv3.OpPut(key, string(f.Numbers.Append(nil))))
	if errors.Is(err, shard.ErrGone) {
		return shard.ErrStale
	}
	return err
}

// Flushed implements [shard.Flushes] by a read that etcd confirms with a majority.
func (m *member) Flushed(ctx context.Context) (rows []shard.Flushed, err error) {
	ctx, done := m.bounded(ctx, 0)
	defer done()
	answer, err := m.client.Get(ctx, nodePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	for _, kv := range answer.Kvs {
		if len(kv.Key) != len(nodePrefix)+8 {
			return nil, fmt.Errorf("%w: a node at %q", shard.ErrDamaged, kv.Key)
		}
		numbers, err := shard.ParseNumbers(kv.Value)
		if err != nil {
			return nil, err
		}
		id := record.NodeID(binary.BigEndian.Uint64(kv.Key[len(nodePrefix):]))
		rows = append(rows, shard.Flushed{Node: id, Numbers: numbers, Revision: kv.ModRevision})
	}
	return rows, nil
}
