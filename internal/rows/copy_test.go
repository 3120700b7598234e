package rows_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestCopy: exact, and only where there is nothing.
func TestCopy(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		const data = `{".priority":"p","x":{".priority":1,".value":9007199254740993},"y":{"0":1,"1":"é"}}`
		f.Put("/a", data)
		v := f.View()
		tag, err := v.ETag(enginetest.Path(t, "/a"))
		v.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			req  rows.CopyRequest
			kind fault.Kind
		}{
			{rows.CopyRequest{From: "/a", To: "/b/c", ETag: tag}, 0},
			{rows.CopyRequest{From: "/a", To: "/b"}, fault.Conflict},
			{rows.CopyRequest{From: "/a", To: "/a/x"}, fault.Conflict},
			{rows.CopyRequest{From: "/a", To: "/z", ETag: "other"}, fault.Precondition},
			{rows.CopyRequest{From: "/none", To: "/z"}, fault.NotFound},
			{rows.CopyRequest{From: "/a", To: "/a$"}, fault.Invalid},
			{rows.CopyRequest{From: "/a", To: "/a/z", Move: true}, fault.Invalid},
			{rows.CopyRequest{From: "/a/x", To: "/", Move: true}, fault.Invalid},
			{rows.CopyRequest{From: "/a", To: strings.Repeat("/d", 31)}, fault.Invalid},
			{rows.CopyRequest{From: "/b/c", To: "/b/d", Move: true}, 0},
			{rows.CopyRequest{From: "/a/x", To: "/b/x", Move: true}, 0},
		} {
			position, err := rows.Copy(t.Context(), f.Database, c.req, 1<<20, &budget.Claim{})
			if c.kind == 0 && (err != nil || position == 0) || c.kind != 0 && fault.KindOf(err) != c.kind {
				t.Errorf("Copy(%v) = %d, %v", c.req, position, err)
			}
		}
		if _, err := rows.Copy(t.Context(), f.Database, rows.CopyRequest{From: "/a", To: "/z"}, 10, &budget.Claim{}); fault.KindOf(err) != fault.TooLarge {
			t.Errorf("a copy of too much is %v", err)
		}
		want := `{"a":{".priority":"p","y":{"0":1,"1":"é"}},"b":{"d":` + data + `,"x":{".priority":1,".value":9007199254740993}}}`
		if got := node(t, f, tree.Path{}); !tree.Equal(got, decode(t, want)) {
			t.Errorf("after the copies there is %s, want %s", f.Export("/"), want)
		}
	})
}

func decode(t *testing.T, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCopyIntoItself: what is copied is the node before.
func TestCopyIntoItself(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `{"x":1}`)
	if _, err := rows.Copy(t.Context(), f.Database, rows.CopyRequest{From: "/a", To: "/a/b"}, 1<<20, &budget.Claim{}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.Export("/"), `{"a":{"b":{"x":1},"x":1}}`; got != want {
		t.Errorf("the copy inside is %s, want %s", got, want)
	}
}

// TestCopyKeepsWhatCameBetween: a value that a client puts above the destination, after the copy has looked, is not
// replaced. What is written beside the destination does not matter.
func TestCopyKeepsWhatCameBetween(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]string{"small": `{"x":1}`, "heavy": `"` + strings.Repeat("x", 300_000) + `"`} {
		for between, want := range map[string]fault.Kind{"/b": fault.Precondition, "/b/c": fault.Precondition, "/b/c/other": 0, "/b/other": 0, "/other": 0} {
			f := enginetest.Open(t, store.Options{})
			f.Put("/a", node)
			write, err := rows.CopyWrite(f.Database, enginetest.Path(t, "/a"), enginetest.Path(t, "/b/c/d"))
			if err != nil {
				t.Fatal(err)
			}
			f.Put(between, `"new"`)
			_, err = f.Write(t.Context(), write)
			if (err != nil) != (want != 0) || err != nil && fault.KindOf(err) != want {
				t.Errorf("a copy of a %s node to /b/c/d after a write at %s = %v", name, between, err)
			}
			if got := f.Export(between); got != `"new"` {
				t.Errorf("after a copy of a %s node to /b/c/d, what was written at %s meanwhile is %.40s", name, between, got)
			}
		}
	}
}

// TestCopiesAreCharged: the memory that a copy takes is claimed before it is taken, and a copy
// for which there is none is refused and takes nothing.
func TestCopiesAreCharged(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/large", `"`+strings.Repeat("x", 300_000)+`"`)
	f.Put("/small", `1`)
	for _, test := range []struct {
		from  string
		limit int64
		want  fault.Kind
	}{
		{"/small", 1 << 20, 0}, {"/large", 1 << 20, 0}, {"/large", 200_000, fault.Unavailable}, {"/small", 200_000, 0}, {"/small", 1000, fault.Unavailable},
	} {
		writes := budget.New(budget.Options{Limit: test.limit})
		claim := writes.Claim(budget.Client{Admin: true}, false)
		_, err := rows.Copy(t.Context(), f.Database, rows.CopyRequest{From: test.from, To: "/to"}, 1<<20, claim)
		if (err != nil) != (test.want != 0) || err != nil && fault.KindOf(err) != test.want {
			t.Errorf("a copy of %s with %d bytes to claim = %v", test.from, test.limit, err)
		}
		if taken := writes.Taken(); err == nil && taken < 1 || taken > test.limit {
			t.Errorf("a copy of %s takes %d of %d", test.from, taken, test.limit)
		}
		claim.Release()
		f.Put("/to", "null")
	}
}
