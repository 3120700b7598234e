package tree_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestAppendBody: the body of a write is read as the same write.
func TestAppendBody(t *testing.T) {
	t.Parallel()
	at, err := tree.ParsePath("/a/b")
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string) tree.Write {
		n, err := tree.Decode(strings.NewReader(text), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return tree.Put(at, n)
	}
	patch := func(text string) tree.Write {
		w, err := tree.DecodePatch(strings.NewReader(text), at, tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, test := range []struct {
		write tree.Write
		want  string
	}{
		{put(`null`), `null`},
		{put(`{".value":9007199254740993,".priority":1}`), `{".value":9007199254740993,".priority":1}`},
		{put(`{"n":{".sv":{"increment":1}},"t":{".sv":"timestamp"}}`), `{"n":{".sv":{"increment":1}},"t":{".sv":"timestamp"}}`},
		{patch(`{"x/y":1,"z":null,"a\"b":{"c":true}}`), `{"x/y":1,"z":null,"a\"b":{"c":true}}`},
		{patch(`{}`), `{}`},
	} {
		if got, ok := tree.AppendBody([]byte("> "), test.write, 100); !ok || string(got) != "> "+test.want {
			t.Errorf("AppendBody(%+v) = %s, %v, want %s", test.write, got, ok, test.want)
		}
	}
	for _, long := range []tree.Write{put(`"` + strings.Repeat("x", 100) + `"`), patch(`{"a":"` + strings.Repeat("x", 60) + `","b":"` + strings.Repeat("x", 60) + `"}`)} {
		if got, ok := tree.AppendBody([]byte("> "), long, 100); ok || string(got) != "> " {
			t.Errorf("a long body is printed as %s", got)
		}
	}
}
