package poll_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
)

// TestSlowMessages: a message that has begun to come must come to its end.
func TestSlowMessages(t *testing.T) {
	t.Parallel()
	whole := "e30." // {}
	for _, test := range []struct {
		what  string
		steps []string // "s:" and seconds to wait, or parameters
		slow  bool
	}{
		{"nothing is owed", []string{"s:50"}, false},
		{"a message at once", []string{"&seg0=0&ts0=1&d0=" + whole, "s:50"}, false},
		{"a message in time", []string{"&seg0=0&ts0=2&d0=e3", "s:9", "&seg0=1&ts0=2&d0=0.", "s:50"}, false},
		{"a message that does not end", []string{"&seg0=0&ts0=2&d0=e3", "s:11"}, true},
		{"a segment that is left out", []string{"&seg0=1&ts0=1&d0=" + whole, "s:11"}, true},
		{"a segment that is late", []string{"&seg0=1&ts0=1&d0=" + whole, "s:9", "&seg0=0&ts0=1&d0=" + whole, "s:50"}, false},
		{"a large one gets longer", []string{"&seg0=0&ts0=2&d0=" + strings.Repeat("e30x", 10<<10/4), "s:19"}, false},
		{"a large one that does not end", []string{"&seg0=0&ts0=2&d0=" + strings.Repeat("e30x", 10<<10/4), "s:21"}, true},
		{"segments that trickle", []string{
			"&seg0=0&ts0=9&d0=e3", "s:6", "&seg0=1&ts0=9&d0=e3", "s:6", "&seg0=2&ts0=9&d0=e3"}, true},
		{"the second has its own time", []string{
			"&seg0=0&ts0=2&d0=e3", "s:8", "&seg0=1&ts0=2&d0=0.&seg1=2&ts1=2&d1=e3", "s:8"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			line, address := s.begin()
			defer line.Close()
			for _, step := range test.steps {
				var seconds int
				if _, err := fmt.Sscanf(step, "s:%d", &seconds); err == nil {
					time.Sleep(time.Duration(seconds) * time.Second) //nolint:forbidigo // fake time
					continue
				}
				go s.get(address + step)
				synctest.Wait()
			}
			if line.Gone() != test.slow {
				t.Errorf("%s: the line has ended: %v, want %v", test.what, line.Gone(), test.slow)
			}
			if !test.slow {
				return
			}
			if _, err := line.Next(); !errors.Is(err, frame.ErrSlow) {
				t.Errorf("%s: the line ends with %v", test.what, err)
			}
			if s.budget.used != 0 {
				t.Errorf("%s: %d bytes are not given back", test.what, s.budget.used)
			}
		})
	}
}
