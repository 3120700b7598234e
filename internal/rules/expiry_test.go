package rules_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/rules"
)

func TestExpiryWarnings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rules string
		want  []int // columns
	}{
		{`{}`, nil},
		{`{"s":{".expireOn":"t"}}`, []int{28}},
		{`{"s":{".expireOn":"t","$s":{"t":{".validate":"newData.val() > now"}}}}`, nil},
		{`{"s":{".expireOn":"t","$s":{".validate":"newData.child('t').val() > now"}}}`, nil},
		{`{"s":{".expireOn":"a/t","$s":{"a":{"$x":{".validate":"newData.val()>now+1"}}}}}`, nil},
		{`{"s":{".expireOn":"t","$s":{"t":{".validate":"newData.isNumber()"}}}}`, []int{28}},
		{`{"s":{".expireOn":"t","$s":{"t":{".validate":"newData.val() == 'know'"}}}}`, []int{28}},
		{`{"s":{".expireOn":"t","me":{},"$s":{"t":{".validate":"newData.val() > now"}}}}`, []int{28}},
		{`{"$a":{".expireOn":"t"},"s":{".expireOn":"t"}}`, []int{29, 51}},
	} {
		r, err := rules.Compile(`{"rules":` + test.rules + `}`)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, p := range r.ExpiryWarnings() {
			got = append(got, p.Column)
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s warns at %v, want %v", test.rules, got, test.want)
		}
	}
}
