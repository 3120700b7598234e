package query_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
)

// TestParseObject compares query objects with the parameters of REST that mean the same.
func TestParseObject(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("z", 786)
	tests := []struct {
		object string
		want   map[string]string
		all    bool
	}{
		{`{}`, map[string]string{"orderBy": `"$priority"`}, true},
		{`{"i":".key"}`, map[string]string{"orderBy": `"$key"`}, true},
		{`{"i":".value","vf":"l"}`, map[string]string{"orderBy": `"$value"`}, true},
		{`{"i":".priority"}`, map[string]string{"orderBy": `"$priority"`}, true},
		{`{"i":"a/b"}`, map[string]string{"orderBy": `"a/b"`}, true},
		{`{"i":"/a/b"}`, map[string]string{"orderBy": `"a/b"`}, true},
		{`{"l":2,"vf":"l"}`, map[string]string{"orderBy": `"$priority"`, "limitToFirst": "2"}, false},
		{`{"l":2.0,"vf":"r"}`, map[string]string{"orderBy": `"$priority"`, "limitToLast": "2"}, false},
		{`{"l":2}`, map[string]string{"orderBy": `"$priority"`, "limitToLast": "2"}, false},
		{`{"l":2,"sp":1}`, map[string]string{"orderBy": `"$priority"`, "limitToFirst": "2", "startAt": "1"}, false},
		{`{"sp":null}`, map[string]string{"orderBy": `"$priority"`, "startAt": "null"}, false},
		{`{"sp":5,"sin":true,"ep":9,"ein":true,"i":"x"}`, map[string]string{"orderBy": `"x"`, "startAt": "5", "endAt": "9"}, false},
		{`{"sp":5,"sin":false,"sn":"[MAX_NAME]","i":"x"}`, map[string]string{"orderBy": `"x"`, "startAfter": "5"}, false},
		{`{"sp":5,"sn":"[MAX_KEY]","i":"x"}`, map[string]string{"orderBy": `"x"`, "startAfter": "5"}, false},
		{`{"sp":5,"sn":"[MAX_NAME]","i":"x"}`, map[string]string{"orderBy": `"x"`, "startAfter": "5"}, false},
		{`{"sp":5,"sn":"[MIN_NAME]","i":"x"}`, map[string]string{"orderBy": `"x"`, "startAt": "5"}, false},
		{`{"ep":5,"ein":false,"en":"[MIN_NAME]","i":"x"}`, map[string]string{"orderBy": `"x"`, "endBefore": "5"}, false},
		{`{"ep":5,"en":"[MIN_NAME]","i":"x"}`, map[string]string{"orderBy": `"x"`, "endBefore": "5"}, false},
		{`{"ep":5,"en":"[MAX_KEY]","i":"x"}`, map[string]string{"orderBy": `"x"`, "endAt": "5"}, false},
		{`{"sp":"a","sn":"k","sin":false,"i":"x"}`, map[string]string{"orderBy": `"x"`, "startAfter": `"a","k"`}, false},
		{`{"sp":"b","i":".key","ep":"b"}`, map[string]string{"orderBy": `"$key"`, "equalTo": `"b"`}, false},
		{`{"sp":"b","sin":false,"i":".key"}`, map[string]string{"orderBy": `"$key"`, "startAfter": `"b"`}, false},
		{`{"sp":"[MIN_NAME]","ep":"[MAX_KEY]","i":".key"}`, map[string]string{"orderBy": `"$key"`}, true},
		{`{"sp":5,"sn":"` + long + `","i":"x"}`, map[string]string{"orderBy": `"x"`, "startAfter": `5,"` + long[:768] + `"`}, false},
		{`{"ep":5,"en":"` + long + `","ein":false,"i":"x"}`, map[string]string{"orderBy": `"x"`, "endAt": `5,"` + long[:768] + `"`}, false},
	}
	for _, test := range tests {
		got, all, err := query.ParseObject([]byte(test.object))
		if want := parse(t, test.want); err != nil || got != want || all != test.all {
			t.Errorf("ParseObject(%s)\n= %+v, %t, %v\nwant %+v, %t", test.object, got, all, err, want, test.all)
		}
	}
}

func TestParseObjectRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `null`, `[]`, `{`, `{"i":`, `{"i":"a","i":"b"}`, `{"x":1}`, `{"I":"a"}`,
		`{"i":1}`, `{"i":""}`, `{"i":"/"}`, `{"i":".info"}`, `{"i":"a.b"}`, `{"i":"a/b#"}`,
		`{"l":0}`, `{"l":-1}`, `{"l":1.5}`, `{"l":"1"}`, `{"l":null}`, `{"l":2147483648}`, `{"l":1e30}`, `{"l":1,"vf":"x"}`, `{"l":1,"vf":1}`,
		`{"sp":{}}`, `{"sp":[]}`, `{"sp":true}`, `{"sp":1,"sin":1}`, `{"sp":1,"sn":1}`, `{"sp":1,"sn":"a.b"}`, `{"sp":1,"sn":""}`,
		`{"i":".key","sp":1}`, `{"i":".key","sp":null}`, `{"i":".key","sp":"a","sn":"b"}`,
		`{"sp":"` + strings.Repeat("a", query.MaxParameterBytes) + `"}`,
	} {
		q, _, err := query.ParseObject([]byte(text))
		if fault.KindOf(err) != fault.Invalid || q != (query.Query{}) {
			t.Errorf("ParseObject(%.80s) = %+v, %v, want an invalid fault", text, q, err)
		}
	}
}

// TestParseObjectBeyondKeys looks at what is selected before and after all keys.
func TestParseObjectBeyondKeys(t *testing.T) {
	t.Parallel()
	n := decode(t, `{"-2147483648":1,"-02147483648":1,"7":1,"a":1,"\uffff\uffff":1}`)
	for _, text := range []string{
		`{"i":".key","ep":"[MIN_NAME]"}`, `{"i":".key","sp":"[MAX_NAME]"}`, `{"i":".key","sp":"[MAX_KEY]"}`,
	} {
		q, all, err := query.ParseObject([]byte(text))
		if err != nil || all {
			t.Fatalf("ParseObject(%s) = %+v, %t, %v", text, q, all, err)
		}
		if got := query.Select(n, q); !slices.Equal(got, nil) {
			t.Errorf("%s selects %q, want nothing", text, got)
		}
	}
}

func FuzzParseObject(f *testing.F) {
	for _, text := range []string{`{}`, `{"i":".key","sp":"a","sin":false,"l":3,"vf":"r"}`, `{"ep":null,"en":"[MAX_KEY]","ein":true}`} {
		f.Add([]byte(text))
	}
	n := decode(f, `{"a":{".value":1,".priority":2},"b":{"x":1},"7":"t"}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		q, all, err := query.ParseObject(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("ParseObject(%q): %v, want an invalid fault", text, err)
			}
			return
		}
		if got := query.Select(n, q); all && len(got) != n.Len() {
			t.Errorf("%q selects %q, want all", text, got)
		}
	})
}
