package hook_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"/", "/orders/$id", "/a/b/c", "/$a/$b"} {
		if p, err := hook.ParsePattern(text); err != nil || p.String() != text {
			t.Errorf("ParsePattern(%q) = %v %v", text, p, err)
		}
	}
	for _, text := range []string{"", "orders", "/a//b", "/$", "/$a/$a", "/a.b", "/a#", "/$a$b", "/" + strings.Repeat("a/", 40), "/" + strings.Repeat("a", 5000)} {
		if _, err := hook.ParsePattern(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("ParsePattern(%.40q) = %v, want it refused", text, err)
		}
	}
	p, _ := hook.ParsePattern("/orders/$id/$part")
	at := path(t, "/orders/7/x")
	if got := p.Params(at); !reflect.DeepEqual(got, map[string]string{"id": "7", "part": "x"}) || !p.Matches(at) || p.Matches(path(t, "/orders/7")) {
		t.Errorf("the pattern %v gives %v at %v", p, got, at)
	}
}

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func FuzzPattern(f *testing.F) {
	f.Add("/orders/$id")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := hook.ParsePattern(text)
		if err != nil {
			return
		}
		again, err := hook.ParsePattern(p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%q was read as %q, and that as %q %v", text, p, again, err)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, url, secret string }{
		{"Orders", "https://example.com", ""}, {"", "https://example.com", ""}, {strings.Repeat("a", 64), "https://example.com", ""},
		{"a", "ftp://example.com", ""}, {"a", "https://", ""}, {"a", "https://u:p@example.com", ""}, {"a", "https://example.com#f", ""},
		{"a", "https://example.com:99999/", ""}, {"a", "https://example.com:0/", ""},
		{"a", "https://example.com/" + strings.Repeat("a", 3000), ""}, {"a", "https://example.com", "whsec_AAAA"}, {"a", "https://example.com", "AAAA"},
	} {
		h := hook.Hook{Name: test.name, URL: test.url}
		if test.secret != "" {
			h.Secrets = []string{test.secret}
		}
		err := h.Check()
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("Check(%+v) = %v, want it refused", test, err)
		}
		if test.secret != "" && strings.Contains(fmt.Sprint(err), test.secret) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// TestSign holds a signature against the example of the specification.
func TestSign(t *testing.T) {
	t.Parallel()
	got, err := hook.Sign([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		"msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`))
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if err != nil || got != want+" "+want {
		t.Errorf("Sign = %q %v, want %q twice", got, err, want)
	}
	drawn, err := hook.DrawSecret(rand.Reader)
	if err != nil || hook.CheckSecret(drawn) != nil {
		t.Errorf("a drawn secret is refused: %v", err)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	pattern, _ := hook.ParsePattern("/orders/$id")
	secret, _ := hook.DrawSecret(rand.Reader)
	new := hook.Hook{Name: "orders", Pattern: pattern, URL: "https://example.com/in", Events: hook.Create | hook.Delete, Created: 5, Secrets: []string{secret}}
	var none *hook.Set
	one, added, err := none.With(new)
	if err != nil || added.Number != 1 {
		t.Fatalf("With = %+v %v", added, err)
	}
	if _, _, err := one.With(new); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second hook of the name: %v, want a conflict", err)
	}
	list, secrets, err := one.Encode()
	if err != nil || bytes.Contains(list, []byte(secret)) {
		t.Errorf("the list shows the secret, or %v", err)
	}
	again, err := hook.DecodeSet(list, secrets)
	if err != nil || !reflect.DeepEqual(again.Hooks(), one.Hooks()) {
		t.Errorf("DecodeSet = %v %v, want %v", again.Hooks(), err, one.Hooks())
	}
	hidden, err := hook.DecodeSet(list, append([]byte{0}, secrets...))
	if err != nil || hidden.Hooks()[0].Sends() {
		t.Errorf("a hook whose secrets are hidden sends: %v", err)
	}
	empty, _, err := one.Without("orders")
	if err != nil || !empty.IsEmpty() {
		t.Fatal(err)
	}
	if _, next, err := empty.With(new); err != nil || next.Number != 2 {
		t.Errorf("the number of a hook was used again: %+v %v", next, err)
	}
}

func FuzzNotice(f *testing.F) {
	n := hook.Notice{Millis: 7, Author: tree.NewAuthor(tree.ByUID, "ann"), More: true, Changes: []hook.Changed{
		{Path: tree.Path{}.Child("a"), Event: hook.Update, Before: hook.Value{Text: []byte("1")}, After: hook.Value{Cut: true}}}}
	f.Add(n.AppendTo(nil))
	f.Fuzz(func(t *testing.T, row []byte) {
		n, err := hook.DecodeNotice(3, row)
		if err != nil {
			return
		}
		again, err := hook.DecodeNotice(3, n.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(n, again) {
			t.Errorf("%x was read as %+v, and that as %+v %v", row, n, again, err)
		}
	})
}

// nothing is a tree without data.
type nothing struct{}

func (nothing) Node(tree.Path, int) (tree.Node, error)      { return tree.Node{}, nil }
func (nothing) NextChild(tree.Path, string) (string, error) { return "", nil }

// counted counts the reads of a tree in which every node is the same.
type counted struct {
	node  tree.Node
	reads int
}

func (c *counted) Node(_ tree.Path, limit int) (tree.Node, error) {
	c.reads++
	if len(tree.AppendJSON(nil, c.node, tree.Export)) > limit {
		return tree.Node{}, store.ErrTooLarge
	}
	return c.node, nil
}

func (c *counted) NextChild(tree.Path, string) (string, error) { return "", nil }

// TestReadsAreBounded has a patch delete more locations than may be looked at, of which there is none: it is said that there may
// be more, and few are read.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	set, err := hook.DecodeSet([]byte(`{"next":2,"hooks":[{"number":1,"name":"h","path":"/a/$id","url":"https://example.com"}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	change := tree.Change{Write: tree.Write{Patch: true}}
	for i := range 1000 {
		change.Assignments = append(change.Assignments, tree.Assignment{Path: path(t, fmt.Sprintf("/a/%d", i))})
	}
	limits := hook.DefaultLimits()
	for _, limit := range []struct{ looks, bytes, want int }{{100, limits.ReadBytes, 100}, {limits.Looks, 12800, 100}, {limits.Looks, limits.ReadBytes, 1000}} {
		limits.Looks, limits.ReadBytes = limit.looks, limit.bytes
		before := &counted{}
		told, err := set.Gather(before, change, limits)
		if more := len(told) == 1 && told[0].Notice.More; err != nil || before.reads != limit.want || more != (limit.want < 1000) {
			t.Errorf("with %+v there were %d reads, and it was told %v: %v", limit, before.reads, told, err)
		}
		limits = hook.DefaultLimits()
	}
}

// TestStoredIsBounded has many hooks with one pattern: what a commit stores for them does not grow with their number.
func TestStoredIsBounded(t *testing.T) {
	t.Parallel()
	for _, hooks := range []int{1, 10, 300} {
		rows := make([]string, 0, hooks)
		for i := range hooks {
			rows = append(rows, fmt.Sprintf(`{"number":%d,"name":"h%d","path":"/a/$id","url":"https://example.com"}`, i+1, i))
		}
		set, err := hook.DecodeSet([]byte(`{"next":9999,"hooks":[`+strings.Join(rows, ",")+`]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		change := tree.Change{Write: tree.Write{Patch: true}}
		for i := range 50 {
			change.Assignments = append(change.Assignments, tree.Assignment{Path: path(t, fmt.Sprintf("/a/%d", i)), Node: text(strings.Repeat("x", 3000))})
		}
		limits := hook.DefaultLimits()
		limits.ReadBytes, limits.ValueBytes = 100_000, 4000
		told, err := set.Gather(&counted{node: text(strings.Repeat("y", 3000))}, change, limits)
		if err != nil || len(told) != hooks {
			t.Fatal(len(told), err)
		}
		stored := 0
		for _, told := range told {
			stored += len(told.Notice.AppendTo(nil))
			changes := told.Notice.Changes
			if len(changes) == 0 || !told.Notice.More && !changes[0].After.Cut {
				t.Fatalf("with %d hooks one is told of %d locations, want some, and that there are more or values are cut", hooks, len(changes))
			}
		}
		if stored > 2*limits.ReadBytes {
			t.Errorf("with %d hooks %d bytes are stored, of %d that may be read", hooks, stored, limits.ReadBytes)
		}
	}
}

func text(s string) tree.Node { return tree.LeafNode(tree.StringLeaf(s)) }

// BenchmarkGather shows that the cost of a commit depends on the patterns that match, not on all.
func BenchmarkGather(b *testing.B) {
	for _, hooks := range []int{1, 1000} {
		for _, matching := range []bool{false, true} {
			b.Run(fmt.Sprintf("hooks=%d/matching=%t", hooks, matching), func(b *testing.B) {
				rows := make([]string, 0, hooks)
				for i := range hooks {
					rows = append(rows, fmt.Sprintf(`{"number":%d,"name":"h%d","path":"/list%d/$id","url":"https://example.com"}`, i+1, i, i))
				}
				set, err := hook.DecodeSet([]byte(`{"next":9999,"hooks":[`+strings.Join(rows, ",")+`]}`), nil)
				if err != nil {
					b.Fatal(err)
				}
				at := path(b, "/other/1/n")
				if matching {
					at = path(b, "/list0/1/n")
				}
				change := tree.Change{Write: tree.Put(at, tree.LeafNode(tree.BooleanLeaf(true))), Position: 1}
				for b.Loop() {
					if told, err := set.Gather(nothing{}, change, hook.DefaultLimits()); err != nil || (len(told) > 0) != matching {
						b.Fatal(told, err)
					}
				}
			})
		}
	}
}

// TestNoticeJSON makes sure that values are JSON.
func TestNoticeJSON(t *testing.T) {
	t.Parallel()
	pattern := []byte(`{"next":2,"hooks":[{"number":1,"name":"h","path":"/a/$id","url":"https://example.com"}]}`)
	set, err := hook.DecodeSet(pattern, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.DecodeBytes([]byte(`{"x":{"y":1},"z":[1,2]}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []hook.Limits{hook.DefaultLimits(), {Locations: 1, Looks: 10, ValueBytes: 3, ReadBytes: 100}} {
		told, err := set.Gather(nothing{}, tree.Change{Write: tree.Put(path(t, "/a"), n)}, limits)
		if err != nil || len(told) != 1 {
			t.Fatal(told, err)
		}
		notice := told[0].Notice
		if few := limits.Locations == 1; len(notice.Changes) != min(2, limits.Locations) || notice.More != few || notice.Changes[0].After.Cut != few {
			t.Errorf("with %+v there is %+v", limits, notice)
		}
		for _, c := range notice.Changes {
			if !c.After.Cut && !json.Valid(c.After.Text) {
				t.Errorf("%s is not JSON", c.After.Text)
			}
		}
	}
}
