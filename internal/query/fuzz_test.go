package query_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzQuery compares two ways to select: Select, which TestSelectAsTheSDK holds to
// the SDK by recorded answers, and the range of index rows that the store reads.
func FuzzQuery(f *testing.F) {
	f.Add(`{"b":2,"a":1,"10":3,"9":3}`, `"$value"`, `2`, `3`, uint8(2), true)
	f.Add(`{"a":{"n":"x"},"b":{"n":null},"c":7,"d":{"n":true},"\ud83d\ude00":{"n":1},"\uffee":{"n":1}}`, `"n"`, ``, `"y"`, uint8(0), false)
	f.Add(`{"01":1,"1":1,"2147483648":1,"-5":1}`, `"$value"`, `1,"1"`, `1,"2147483648"`, uint8(3), false)
	f.Add(`{"a":{".value":1,".priority":2},"b":{".value":1,".priority":"x"}}`, `"$priority"`, `1`, ``, uint8(1), true)
	f.Fuzz(func(t *testing.T, body, order, from, to string, limit uint8, last bool) {
		n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{})
		if err != nil || len(body) > 1<<12 {
			return
		}
		parameters := map[string]string{"orderBy": order}
		for name, bound := range map[string]string{"startAt": from, "endAt": to} {
			if bound != "" {
				parameters[name] = bound
			}
		}
		q, ok, err := query.Parse(in(parameters))
		if err != nil || !ok || q.Order == query.ByKey() {
			return // by key, the rows are those of the data
		}
		if limit %= 8; limit > 0 {
			q.Limit, q.Last = int(limit), last
		}
		if got, want := selectByRows(t, n, q), query.Select(n, q); !slices.Equal(got, want) {
			t.Errorf("of %s, %+v selects %q by its rows, want %q", body, q, got, want)
		}
	})
}
