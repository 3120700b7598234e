//go:build unix && !no_s3

package trust_test

import (
	"testing"
)

// TestBucketJudgeFindsBugs shows that it is noticed when a bucket has forgotten the base, or when a change of homes has cost another base or line.
func TestBucketJudgeFindsBugs(t *testing.T) {
	const line = "livetree/lines/a-1/"
	for name, test := range map[string]struct {
		keys   []string
		isGood bool
	}{
		"all":          {[]string{line + "bases/1/base.json", line + "bases/1/rows", line + "segments/1", line + "segments/2"}, true},
		"no base":      {[]string{line + "segments/1", line + "segments/2"}, false},
		"another base": {[]string{line + "bases/1/base.json", line + "segments/1", line + "bases/2/base.json"}, false},
		"another line": {[]string{line + "bases/1/base.json", line + "segments/1", "livetree/lines/a-2/segments/2"}, false},
		"nothing":      {nil, false},
	} {
		if err := judgeKeys(test.keys); (err == nil) != test.isGood {
			t.Errorf("%s: %v, want it to be good: %v", name, err, test.isGood)
		}
	}
}
