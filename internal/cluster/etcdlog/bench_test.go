//go:build !no_cluster && unix

package etcdlog_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// An appender appends one record in its own way.
type appender func(etcdlog.Member, context.Context, int, shard.Head, shard.Head, []byte) (int64, error)

// BenchmarkAppend appends records of 1 KiB, one after the other: with the record at a key of its own, as it is
// done, and with the record in the head, one put instead of two.
func BenchmarkAppend(b *testing.B) {
	ways := []struct {
		name   string
		append appender
	}{{"two puts", etcdlog.Member.Append}, {"one put", etcdlog.AppendToHead}}
	for _, size := range []int{1, 3} {
		c := found(b, size, nil)
		for s, way := range ways {
			b.Run(fmt.Sprintf("%d members/%s", size, way.name), func(b *testing.B) {
				ctx, m := b.Context(), c.lives[0].Member
				head := headOf(c, s)
				start := cpu(b)
				for b.Loop() {
					encoded, err := record.Record{Kind: record.Control, Previous: head.Digest, Effect: make([]byte, 1024)}.Encode()
					if err != nil {
						b.Fatal(err)
					}
					next := head.After(1, encoded)
					if next.Revision, err = way.append(m, ctx, s, head, next, encoded); err != nil {
						b.Fatal(err)
					}
					head = next
				}
				b.ReportMetric(float64((cpu(b)-start).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkHeads asks for the heads, one question after the other.
func BenchmarkHeads(b *testing.B) {
	for _, size := range []int{1, 3} {
		c := found(b, size, nil)
		headOf(c, 0)
		b.Run(fmt.Sprintf("%d members", size), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.lives[0].Heads(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
