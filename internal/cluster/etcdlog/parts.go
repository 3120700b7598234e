//go:build !no_cluster

package etcdlog

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

const (
	// pageTransfers is how many transfers are listed at once.
	pageTransfers = 256
	// deletesAtOnce is how many deletes a transaction has: etcd takes 128.
	deletesAtOnce = 100
)

// isOpen compares that a transfer is the one that was begun, and open.
func isOpen(t shard.Transfer) []clientv3.Cmp {
	key := transferKey(t.ID)
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", t.Created),
		clientv3.Compare(clientv3.Value(key), "=", openTransfer),
	}
}

// deleteTransfer deletes a transfer with all of its parts.
func deleteTransfer(id record.TransferID) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpDelete(transferKey(id)),
		clientv3.OpDelete(partKey(id, 0), clientv3.WithRange(partEnd(id))),
	}
}

// Begin implements [shard.Transfers].
func (m *member) Begin(ctx context.Context, id record.TransferID) (shard.Transfer, error) {
	if err := room(m); err != nil {
		return shard.Transfer{}, err
	}
	key := transferKey(id)
	revision, err := m.change(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}, clientv3.OpPut(key, openTransfer))
	return shard.Transfer{ID: id, Created: revision, Touched: revision}, err
}

// PutPart implements [shard.Transfers]. It writes the transfer, too, with the value that it has: so etcd knows when that was last.
func (m *member) PutPart(ctx context.Context, t shard.Transfer, number uint32, part []byte) error {
	if len(part) > record.MaxBytes {
		return fmt.Errorf("a part of %d bytes: at most %d are taken", len(part), record.MaxBytes)
	}
	if err := room(m); err != nil {
		return err
	}
	_, err := m.change(ctx, isOpen(t), opPut(partKey(t.ID, number), part), clientv3.OpPut(transferKey(t.ID), openTransfer))
	return err
}

// Assemble implements [shard.Transfers].
func (m *member) Assemble(ctx context.Context, t shard.Transfer, s int, base, next shard.Head, encoded []byte) (int64, error) {
	return m.append(ctx, s, base, next, encoded, &t)
}

// Abandon implements [shard.Transfers].
func (m *member) Abandon(ctx context.Context, t shard.Transfer, touched int64) error {
	compares := isOpen(t)
	if touched != 0 {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(transferKey(t.ID)), "=", touched))
	}
	_, err := m.change(ctx, compares, deleteTransfer(t.ID)...)
	return err
}

// change makes a change of a transfer if the compares hold, and returns its revision.
func (m *member) change(ctx context.Context, compares []clientv3.Cmp, ops ...clientv3.Op) (int64, error) {
	bytes := 0
	for _, op := range ops {
		bytes += len(op.ValueBytes())
	}
	ctx, done := m.bounded(ctx, bytes)
	defer done()
	answer, err := m.client.Txn(ctx).If(compares...).Then(ops...).Commit()
	if err != nil {
		return 0, outcome(err)
	}
	if !answer.Succeeded {
		return 0, shard.ErrGone
	}
	return answer.Header.Revision, nil
}

// Parts implements [shard.Transfers] by a read of this member alone.
func (m *member) Parts(ctx context.Context, id record.TransferID, from uint32) (parts [][]byte, err error) {
	answer, err := m.get(ctx, partKey(id, from), clientv3.WithRange(partEnd(id)), clientv3.WithLimit(shard.PageParts), clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	for i, kv := range answer.Kvs {
		if string(kv.Key) != partKey(id, from+uint32(i)) {
			break
		}
		parts = append(parts, kv.Value)
	}
	return parts, nil
}

// OpenTransfers implements [shard.Transfers].
func (m *member) OpenTransfers(ctx context.Context) (open []shard.Transfer, err error) {
	err = m.eachTransfer(ctx, func(t shard.Transfer, isOpen bool, _ int, _ uint64) error {
		if isOpen {
			open = append(open, t)
		}
		return nil
	})
	return open, err
}

// eachTransfer calls do with all transfers, and the records that have assembled those that are not open. A majority confirms the list.
func (m *member) eachTransfer(ctx context.Context, do func(t shard.Transfer, open bool, s int, number uint64) error) error {
	from := transferPrefix
	for {
		answer, err := m.get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(transferPrefix)), clientv3.WithLimit(pageTransfers))
		if err != nil {
			return err
		}
		for _, kv := range answer.Kvs {
			id, open, s, number, err := parseTransfer(kv.Key, kv.Value)
			if err != nil {
				return err
			}
			if err := do(shard.Transfer{ID: id, Created: kv.CreateRevision, Touched: kv.ModRevision}, open, s, number); err != nil {
				return err
			}
			from = string(kv.Key) + "\x00"
		}
		if !answer.More {
			return nil
		}
	}
}

// trimParts deletes the parts of records that are trimmed, and returns the revision after that.
func (m *member) trimParts(ctx context.Context, below shard.Numbers, heads shard.Heads) (revision int64, err error) {
	var deletes []clientv3.Op
	flush := func(most int) error {
		if len(deletes) < most {
			return nil
		}
		answer, err := m.client.Txn(ctx).Then(deletes...).Commit()
		if err == nil {
			deletes, revision = nil, answer.Header.Revision
		}
		return err
	}
	err = m.eachTransfer(ctx, func(t shard.Transfer, open bool, s int, number uint64) error {
		if !open && number < min(below[s], heads[s].Number) {
			deletes = append(deletes, deleteTransfer(t.ID)...)
		}
		return flush(deletesAtOnce)
	})
	if err == nil {
		err = flush(0)
	}
	return revision, err
}
