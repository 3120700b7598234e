//go:build !no_cluster

package etcdlog

import (
	"encoding/binary"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// The keys in etcd. Numbers are big-endian, so that they sort.
const (
	headPrefix     = "head/"
	logPrefix      = "log/"
	partPrefix     = "part/"
	transferPrefix = "transfer/"
	nodePrefix     = "node/"
)

// headKey is where the head of a shard is.
func headKey(s int) string { return headPrefix + string([]byte{byte(s)}) }

// logKey is where a record of a shard is.
func logKey(s int, number uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(logPrefix+string([]byte{byte(s), '/'})), number))
}

// logEnd is after all records of a shard.
func logEnd(s int) string { return logPrefix + string([]byte{byte(s), '/' + 1}) }

// parseLogKey tells of which shard and number the record at a key is.
func parseLogKey(key []byte) (s int, number uint64, err error) {
	n := len(logPrefix)
	if len(key) != n+2+8 || string(key[:n]) != logPrefix || key[n] >= shard.Count || key[n+1] != '/' {
		return 0, 0, fmt.Errorf("%w: a record at %q", shard.ErrDamaged, key)
	}
	return int(key[n]), binary.BigEndian.Uint64(key[n+2:]), nil
}

// transferKey is where it says what became of a transfer.
func transferKey(id record.TransferID) string { return transferPrefix + string(id[:]) }

// partKey is where a part of a transfer is.
func partKey(id record.TransferID, number uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(partPrefix+string(id[:])+"/"), number))
}

// partEnd is after all parts of a transfer.
func partEnd(id record.TransferID) string {
	return partPrefix + string(id[:]) + string([]byte{'/' + 1})
}

// openTransfer is the value of a transfer that no record has assembled yet.
const openTransfer = "open"

// assembledBy is the value of a transfer that a record has assembled.
func assembledBy(s int, number uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte{byte(s)}, number))
}

// parseTransfer reads the key and the value of a transfer.
func parseTransfer(key, value []byte) (id record.TransferID, open bool, s int, number uint64, err error) {
	open = string(value) == openTransfer
	if len(key) != len(transferPrefix)+len(id) || !open && (len(value) != 9 || value[0] >= shard.Count) {
		return id, false, 0, 0, fmt.Errorf("%w: a transfer at %q", shard.ErrDamaged, key)
	}
	copy(id[:], key[len(transferPrefix):])
	if !open {
		s, number = int(value[0]), binary.BigEndian.Uint64(value[1:])
	}
	return id, open, s, number, nil
}

// nodeKey is where it says what a node has flushed.
func nodeKey(id record.NodeID) string {
	return string(binary.BigEndian.AppendUint64([]byte(nodePrefix), uint64(id)))
}
