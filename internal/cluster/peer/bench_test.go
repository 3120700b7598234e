package peer_test

import (
	"testing"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// BenchmarkCall asks a peer over one connection, one call after the other and many at a time.
func BenchmarkCall(b *testing.B) {
	from, to := pair(b, peer.Options{}, peer.Options{})
	to.Handle("echo", echo)
	body := make([]byte, 300)
	one := func(b *testing.B) {
		if _, err := from.Call(b.Context(), to.Addr(), "echo", body); err != nil {
			b.Error(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			one(b)
		}
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(64)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				one(b)
			}
		})
	})
}
