package auth

import (
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

func TestIdentityAuthor(t *testing.T) {
	t.Parallel()
	claims := func(text string) tree.Node {
		n, err := tree.DecodeClaims([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for want, who := range map[string]Identity{
		"nobody":   {},
		"uid:ann":  {Auth: claims(`{"uid":"ann"}`)},
		"uid":      {Auth: claims(`{"uid":7}`)},
		"secret":   {Admin: true},
		"account":  {Admin: true, Operator: true, By: tree.ByAccount},
		"operator": {Admin: true, Operator: true, By: tree.ByOperator},
		"uid:root": {Admin: true, Auth: claims(`{"uid":"root"}`)},
		"uid:ben":  Identity{Admin: true, Operator: true, By: tree.BySecret}.As(claims(`{"uid":"ben"}`)),
	} {
		if got := who.Author().String(); got != want {
			t.Errorf("%+v is the author %q, want %q", who, got, want)
		}
	}
}
