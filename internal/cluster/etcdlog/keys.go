//go:build !no_cluster

package etcdlog

import (
	"encoding/binary"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// The keys in etcd. Numbers are big-endian, so that they sort.
const (
	headPrefix = "head/"
	logPrefix  = "log/"
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
