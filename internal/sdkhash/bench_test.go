package sdkhash_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/phone"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// messages returns about a mebibyte of chat messages, no two with the same fields.
func messages(priorities bool) []byte {
	out := []byte{'{'}
	for i := 0; len(out) < 1<<20; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `"-OHxQ2%06dfVtR4mWn":{`, i)
		if priorities {
			out = fmt.Appendf(out, `".priority":%d,`, i*7919%10007)
		}
		out = fmt.Appendf(out, `"active":%t,"author":"3kfLmQ2ZtXgYc%d","body":"See you at the harbour, eight sharp. Bring the %d maps!",`+
			`"created":%d,"likes":%d,"room":"-OHxQ2bKz9fVtR4mW%d","score":%g,"tags":{"maps":true,"travel":true},"title":"Saturday, %d January"}`,
			i%3 == 0, i, i, 1767225600123+int64(i)*1013, i%1000, i, float64(i)/1013+0.25, i)
	}
	return append(out, '}')
}

func BenchmarkOf(b *testing.B) {
	for name, priorities := range map[string]bool{"plain": false, "priorities": true} {
		b.Run(name, func(b *testing.B) {
			text := messages(priorities)
			n := decode(b, string(text))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				sdkhash.Of(n)
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for name, priorities := range map[string]bool{"plain": false, "priorities": true} {
		b.Run(name, func(b *testing.B) {
			text := tree.AppendJSON(nil, decode(b, string(messages(priorities))), tree.Export)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				w := sdkhash.NewWriter(plenty)
				for rest := text; len(rest) > 0; rest = rest[min(32<<10, len(rest)):] {
					if _, err := w.Write(rest[:min(32<<10, len(rest))]); err != nil {
						b.Fatal(err)
					}
				}
				if _, _, err := w.Sums(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMerges is for a client that lacks one message of many.
func BenchmarkMerges(b *testing.B) {
	text := messages(false)
	client := decode(b, string(text))
	e := tree.NewEditor(client)
	for key := range client.Children() {
		path, err := tree.ParsePath(key + "/likes")
		if err != nil {
			b.Fatal(err)
		}
		e.Set(path, tree.LeafNode(tree.IntegerLeaf(-1)))
		break
	}
	server := e.Node()
	s := phone.Splitter{Split: func(length int, _ []string) bool { return length > 10<<10 }} // as for 1 MiB
	hashes, posts := s.Ranges(client)
	c := compound(b, hashes, posts)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if merges, ok := c.Merges(server); !ok || len(merges) != 1 {
			b.Fatalf("%d merges", len(merges))
		}
	}
}
