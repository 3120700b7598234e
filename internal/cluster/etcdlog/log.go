//go:build !no_cluster

package etcdlog

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// Append implements [shard.Log].
func (m *member) Append(ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	return m.append(ctx, s, base, next, encoded, nil)
}

// append appends a record, that of a transfer if there is one.
func (m *member) append(ctx context.Context, s int, base, next shard.Head, encoded []byte, t *shard.Transfer) (int64, error) {
	if len(encoded) > record.MaxBytes {
		return 0, fmt.Errorf("a record of %d bytes: at most %d are taken", len(encoded), record.MaxBytes)
	}
	if err := room(m); err != nil {
		return 0, err
	}
	ctx, done := m.bounded(ctx, len(encoded))
	defer done()
	key := headKey(s)
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", base.Revision)}
	puts := []clientv3.Op{opPut(logKey(s, next.Number), encoded), opPut(key, next.Append(nil))}
	if t != nil {
		compares = append(compares, isOpen(*t)...)
		puts = append(puts, clientv3.OpPut(transferKey(t.ID), assembledBy(s, next.Number)))
	}
	answer, err := m.client.Txn(ctx).If(compares...).Then(puts...).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return 0, outcome(err)
	}
	if answer.Succeeded {
		return answer.Header.Revision, nil
	}
	// The head is as it was when the transaction was refused. If it is base, it was the transfer.
	var now int64
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		now = kv.ModRevision
	}
	if t != nil && now == base.Revision {
		return 0, shard.ErrGone
	}
	return 0, shard.ErrStale
}

// opPut puts bytes, which must not change any more, without a copy: that of a string would be made twice.
func opPut(key string, value []byte) clientv3.Op {
	op := clientv3.OpPut(key, "")
	op.WithValueBytes(value)
	return op
}

// outcome says what a proposal has come to that has failed. etcd says that there is no space, too, for the first that is
// beyond its quota, which takes effect all the same: so that is not known.
func outcome(err error) error {
	if errors.Is(err, rpctypes.ErrTooManyRequests) {
		return fmt.Errorf("%w: %w", shard.ErrAgain, err)
	}
	return fmt.Errorf("%w: %w", shard.ErrUnknown, err)
}

// errStopping says that etcd ends by itself, as it does when the member was removed.
var errStopping = errors.New("etcd is stopping")

// get reads keys. etcd reads its file also after it has closed that: what this ends with is no defect then.
func (m *member) get(ctx context.Context, key string, opts ...clientv3.OpOption) (answer *clientv3.GetResponse, err error) {
	stopping := m.etcd.Server.StoppingNotify()
	defer func() {
		select {
		case <-stopping:
			if recover() != nil || err == nil {
				answer, err = nil, errStopping
			}
		default:
		}
	}()
	select {
	case <-stopping:
		return nil, errStopping
	default:
		return m.client.Get(ctx, key, opts...)
	}
}

// knownHeads are the heads as they are at a revision.
type knownHeads struct {
	revision int64
	heads    shard.Heads
}

// Heads implements [shard.Log]. A majority confirms up to where this member has to know the log; then the heads are read from this member alone, or are those that were read
// before, if nothing was written since.
func (m *member) Heads(ctx context.Context) (heads shard.Heads, err error) {
	ctx, done := m.bounded(ctx, 0)
	defer done()
	if err := m.etcd.Server.LinearizableReadNotify(ctx); err != nil {
		return heads, err
	}
	if known := m.heads.Load(); known != nil && known.revision == m.etcd.Server.KV().Rev() {
		return known.heads, nil
	}
	answer, err := m.get(ctx, headPrefix, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return heads, err
	}
	for _, kv := range answer.Kvs {
		if len(kv.Key) != len(headPrefix)+1 || kv.Key[len(headPrefix)] >= shard.Count {
			return heads, fmt.Errorf("%w: a head at %q", shard.ErrDamaged, kv.Key)
		}
		h, err := shard.ParseHead(kv.Value)
		if err != nil {
			return heads, err
		}
		h.Revision = kv.ModRevision
		heads[kv.Key[len(headPrefix)]] = h
	}
	m.heads.Store(&knownHeads{answer.Header.Revision, heads})
	return heads, nil
}

// Page implements [shard.Log] by a read of this member alone.
func (m *member) Page(ctx context.Context, s int, from uint64) (shard.Page, error) {
	answer, err := m.get(ctx, logKey(s, from), clientv3.WithRange(logEnd(s)),
		clientv3.WithLimit(shard.PageEntries), clientv3.WithSerializable())
	if err != nil {
		return shard.Page{}, err
	}
	page := shard.Page{Revision: answer.Header.Revision, Last: !answer.More}
	for i, kv := range answer.Kvs {
		e, err := entry(kv.Key, kv.Value, kv.ModRevision)
		if err != nil {
			return shard.Page{}, err
		}
		if i == 0 && e.Number > max(from, 1) {
			return shard.Page{}, fmt.Errorf("%w: the first one is %d, not %d", shard.ErrTrimmed, e.Number, from)
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

// entry returns the record at a key of etcd.
func entry(key, value []byte, revision int64) (shard.Entry, error) {
	s, number, err := parseLogKey(key)
	return shard.Entry{Shard: s, Number: number, Revision: revision, Record: value}, err
}

// Trim implements [shard.Log]. It also has etcd forget old versions of what is left, which takes the room of
// what was deleted, and ends watches that are far behind.
func (m *member) Trim(ctx context.Context, below shard.Numbers) error {
	heads, err := m.Heads(ctx)
	if err != nil {
		return err
	}
	var deletes []clientv3.Op
	for s, number := range below {
		if number = min(number, heads[s].Number); number > 1 {
			deletes = append(deletes, clientv3.OpDelete(logKey(s, 0), clientv3.WithRange(logKey(s, number))))
		}
	}
	// The parts come after the records, so that a record that is in the log has its parts.
	if _, err := m.client.Txn(ctx).Then(deletes...).Commit(); err != nil {
		return fmt.Errorf("trim of the log: %w", err)
	}
	revision, err := m.trimParts(ctx, below, heads)
	if err != nil {
		return fmt.Errorf("trim of parts: %w", err)
	}
	if _, err := m.client.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compaction of the log: %w", err)
	}
	return nil
}
