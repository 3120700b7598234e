package tree

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAuthor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Author{
		"":                  {},
		"nobody":            {By: ByNobody},
		"uid:ann":           {By: ByUID, UID: "ann"},
		"uid:a:b":           {By: ByUID, UID: "a:b"},
		"ondisconnect:ann":  {By: ByOnDisconnect, UID: "ann"},
		"ondisconnect":      {By: ByOnDisconnect},
		"uid:\u00e9 and so": {By: ByUID, UID: "\u00e9 and so"},
	} {
		if got := ParseAuthor(text); got != want || got.String() != text {
			t.Errorf("%q reads as %+v, want %+v", text, got, want)
		}
	}
	long := NewAuthor(ByUID, strings.Repeat("\u00e9", 1000)+"x")
	if len(long.UID) != maxAuthorUID || !utf8.ValidString(long.UID) {
		t.Errorf("a long id is cut to %d bytes", len(long.UID))
	}
	if odd := NewAuthor(ByUID, "x"+strings.Repeat("\u00e9", 1000)); len(odd.UID) != maxAuthorUID-1 || !utf8.ValidString(odd.UID) {
		t.Errorf("a long id is cut to %d bytes", len(odd.UID))
	}
}
