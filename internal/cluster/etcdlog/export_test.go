//go:build !no_cluster

package etcdlog

import (
	"bytes"
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// Kill stops a member as hard as a process can without ending: nothing is handed over.
func Kill(m Member) {
	e := m.(*member).etcd
	e.Server.HardStop()
	m.Stop()
}

// AppendToHead appends a record with its head in one value, to be measured against Append. The key is one that nothing reads.
func AppendToHead(m Member, ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	key := "whole/" + headKey(s)
	answer, err := m.(*member).client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "<", base.Revision+1)).
		Then(clientv3.OpPut(key, string(next.Append(nil))+string(encoded))).
		Commit()
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// Damage turns a bit in the newest value that a member has, as a disk or a memory might that is not well.
func Damage(m Member) {
	backend := m.(*member).etcd.Server.Backend()
	tx := backend.BatchTx()
	tx.LockOutsideApply()
	keys, values := tx.UnsafeRange(schema.Key, make([]byte, 17), bytes.Repeat([]byte{0xff}, 17), 0)
	last := len(keys) - 1
	value := bytes.Clone(values[last])
	value[len(value)/2] ^= 1
	tx.UnsafePut(schema.Key, keys[last], value)
	tx.Unlock()
	backend.ForceCommit()
}
