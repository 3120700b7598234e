package watch_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/store"
)

// BenchmarkResume measures how a watch begins that missed changes, up to its last
// event: of another place, or of its own.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{1000, 8000, 64_000} {
		f := open(b, store.Options{})
		behind := f.Do(`PUT / {"room":{"m":0},"elsewhere":{"m":0}}`).Position
		for i := range n {
			f.Do(fmt.Sprintf(`PUT /room/messages/m%d {"from":"user%d","text":"a message of some length, as they are"}`, i%50, i))
		}
		for _, at := range []string{"elsewhere", "room"} {
			b.Run(fmt.Sprintf("%s/missed=%d", at, n), func(b *testing.B) {
				req := whole(b, "/"+at)
				req.Resume, req.Behind, req.Wake = true, behind, func() {}
				b.ReportAllocs()
				for b.Loop() {
					w, _, err := f.Watches().Open(req)
					if err != nil {
						b.Fatal(err)
					}
					for {
						e, ok := w.Next()
						if !ok {
							break
						}
						if e.Content != nil {
							_ = e.Content.Close()
						}
					}
					w.Close()
				}
			})
		}
	}
}
