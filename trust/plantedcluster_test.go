//go:build unix

package trust_test

import (
	"testing"
)

// TestDiaryFindsBugs shows that it is noticed when a stream leaves an event out, ends early, or is sent everything twice.
func TestDiaryFindsBugs(t *testing.T) {
	for name, test := range map[string]struct {
		events []string
		isGood bool
	}{
		"all":       {[]string{`{"path":"/","data":{"n1":1}}`, `{"path":"/n2","data":2}`, `{"path":"/n3","data":3}`}, true},
		"one again": {[]string{`{"path":"/","data":{"n1":1}}`, `{"path":"/n2","data":2}`, `{"path":"/n2","data":2}`, `{"path":"/n3","data":3}`}, true},
		"left out":  {[]string{`{"path":"/","data":{"n1":1}}`, `{"path":"/n3","data":3}`}, false},
		"early":     {[]string{`{"path":"/","data":{"n1":1}}`, `{"path":"/n2","data":2}`}, false},
		"all twice": {[]string{`{"path":"/","data":{"n1":1}}`, `{"path":"/","data":{"n1":1,"n2":2,"n3":3}}`}, false},
		"back":      {[]string{`{"path":"/","data":{"n1":1,"n2":2,"n3":3}}`, `{"path":"/","data":{"n1":1}}`}, false},
	} {
		s := &diaryStream{changed: make(chan struct{}, 1)}
		for _, data := range test.events {
			s.take("id", data)
		}
		if err := s.judge(3); (err == nil) != test.isGood {
			t.Errorf("%s: %v, want it to be good: %v", name, err, test.isGood)
		}
	}
}
