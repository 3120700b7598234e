package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzTreeOps makes writes of lines, "verb path body", and compares the tree with
// that of the model: both take a write or both refuse it, and then show the same.
func FuzzTreeOps(f *testing.F) {
	f.Add("put a/b {\"x\":1,\"y\":[1,2]}\npatch a {\"b/x\":null,\"c\":{\".value\":1,\".priority\":2}}\ndelete a/b\npriority a \"p\"", uint8(1))
	f.Add("put / {\"7\":1,\"007\":2,\"-0\":3}\nput a 1\nput a/b/c true\npatch / {\"a\":null,\"7/x\":{\".sv\":{\"increment\":1}}}", uint8(0))
	f.Add("put a {\".sv\":{\"increment\":9007199254740993}}\nput a {\".sv\":{\"increment\":0.5}}\npriority a/b 1\npatch a {\"b\":{\"c\":1},\"b/c\":2}", uint8(2))
	var databases []*fixture // by chunk limits
	for _, limit := range []int{-1, 24, 4096} {
		databases = append(databases, open(f, store.Options{ChunkBytes: limit, BallastBytes: -1}))
	}
	f.Fuzz(func(t *testing.T, lines string, which uint8) {
		if len(lines) > 1<<12 {
			return
		}
		d, want := *databases[int(which)%len(databases)], model.New()
		d.T = t
		if _, err := d.Write(context.Background(), engine.Request{Write: tree.Put(tree.Path{}, tree.Node{}), Who: admin}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(lines) {
			verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			at, body, _ := strings.Cut(rest, " ")
			location, err := tree.ParsePath(at)
			if err != nil {
				continue
			}
			w, err := decodeWrite(verb, location, body)
			if err != nil {
				continue // FuzzJSON and FuzzPatch compare who refuses what
			}
			commit, err := d.Write(context.Background(), engine.Request{Write: w, Who: admin})
			problem := applyWrite(want, verb, pathKeys(location), body, commit.Millis)
			if (err == nil) != (problem == nil) {
				t.Fatalf("%q: %v, but the model says %v", line, err, problem)
			}
			if got, text := d.Export("/"), want.Export(nil); got != text {
				t.Fatalf("after %q the tree is\n%s\nwant\n%s", line, got, text)
			}
		}
	})
}

func decodeWrite(verb string, at tree.Path, body string) (tree.Write, error) {
	switch verb {
	case "patch":
		return tree.DecodePatch(strings.NewReader(body), at, tree.DecodeOptions{})
	case "priority":
		n, err := tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		return tree.PutPriority(at, n), err
	case "delete":
		return tree.Put(at, tree.Node{}), nil
	}
	return put(at, body)
}

func applyWrite(t *model.Tree, verb string, keys []string, body string, millis int64) error {
	switch verb {
	case "patch":
		return t.Patch(keys, []byte(body), millis)
	case "priority":
		return t.PutPriority(keys, []byte(body), millis)
	case "delete":
		t.Delete(keys)
		return nil
	}
	return t.Put(keys, []byte(body), millis)
}
