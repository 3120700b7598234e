package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestTooManyLongStringsAlike: a query whose limit ends among more strings that begin
// alike than are sorted is refused with its reason, whatever the limit is. Without a
// limit there is nothing to sort.
func TestTooManyLongStringsAlike(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const portion, portions = 500, 21
	long := strings.Repeat("x", 1024)
	for first := range portions {
		var body strings.Builder
		for i := range portion {
			n := first*portion + i
			fmt.Fprintf(&body, `,"k%05d":{".value":1,".priority":"%s%05d"}`, n, long, n)
		}
		if got, _ := s.do("PATCH /l.json?print=silent {" + body.String()[1:] + "}"); got != "204" {
			t.Fatal(got)
		}
	}
	refused := "400 " + errorBody("more than 10000 strings, or 32 MiB of them, are longer than 1024 bytes and begin alike")
	s.expect(
		`GET /l.json?orderBy="$priority"&limitToFirst=1`, refused,
		`GET /l.json?orderBy="$priority"&limitToLast=10100`, refused,
	)
	for _, limit := range []string{"", "&limitToLast=20000"} {
		got, _ := s.do(`GET /l.json?orderBy="$priority"` + limit)
		if count := strings.Count(got, ":"); count != portion*portions || !strings.HasSuffix(got, "}") {
			t.Errorf("%s: %d children, want %d", limit, count, portion*portions)
		}
	}
}
