package query_test

import (
	"testing"

	"github.com/livetree/livetree/internal/query"
)

// TestParametersGiveTheSameQuery: what is printed is read as the same query.
func TestParametersGiveTheSameQuery(t *testing.T) {
	t.Parallel()
	for _, asked := range []map[string]string{
		{"orderBy": `"$key"`},
		{"orderBy": `"$value"`, "limitToFirst": "3"},
		{"orderBy": `"$priority"`, "startAt": `null`, "endAt": `"z"`},
		{"orderBy": `"$key"`, "startAfter": `"a\"b"`, "endBefore": `"é"`, "limitToLast": "7"},
		{"orderBy": `"owner/name"`, "equalTo": `"ann"`},
		{"orderBy": `"n"`, "equalTo": `5,"k"`},
		{"orderBy": `"n"`, "startAt": `9007199254740993,"k1"`, "endAt": `1e300`},
		{"orderBy": `"n"`, "startAfter": `-1.5`, "endBefore": `true`},
		{"orderBy": `"n"`, "startAfter": `5,"[MAX_NAME]"`},
		{"orderBy": `"n"`, "endBefore": `5,"[MIN_NAME]"`},
	} {
		want, _, err := query.Parse(from(asked))
		if err != nil {
			t.Fatalf("Parse(%v) = %v", asked, err)
		}
		printed := want.Parameters()
		if got, ok, err := query.Parse(from(printed)); !ok || err != nil || got != want {
			t.Errorf("Parse(%v) = %+v, %v, want %+v as of %v", printed, got, err, want, asked)
		}
	}
}

func from(list map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := list[name]
		return value, ok
	}
}
