//go:build !no_cluster

package etcdlog

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

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
