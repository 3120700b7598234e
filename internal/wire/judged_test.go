package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// TestJudgedWhileTold: a client that takes its time, and so always has something to be told, is
// judged by the time as others are.
func TestJudgedWhileTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lasts time.Duration // how long the rules let it listen
		want  bool          // it is told what was written
	}{
		"may not any more": {20 * time.Second, false},
		"may":              {long, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				until := time.Now().Add(test.lasts).UnixMilli()
				s.db.Rule(fmt.Sprintf(`{"rules": {"big": {".read": true}, "x": {".read": "now < %d"}}}`, until))
				s.db.Put("/big", `"`+strings.Repeat("x", 50<<10)+`"`)
				c := s.socket(t, "")
				ask(t, c, "q", `{"p":"/x","h":""}`)
				for r := range 60 { // answers for more than five minutes
					c.SendFrames(wiretest.Text(request(100+r, "g", `{"p":"/big","q":{}}`)))
				}
				told := takeSlowly(t, c, 70*time.Second)
				s.db.Put("/x", `"written later"`)
				told += takeSlowly(t, c, 10*time.Minute)
				if got := strings.Contains(told, "written later"); got != test.want {
					t.Errorf("told what was written: %v, want %v", got, test.want)
				}
				const cancel = `{"t":"d","d":{"a":"c","b":{"p":"x"`
				if got := strings.Contains(told, cancel); got == test.want {
					t.Errorf("cancelled: %v", got)
				}
			})
		})
	}
}

// takeSlowly takes 8 KiB a second of what a client is sent, and returns it.
func takeSlowly(t *testing.T, c *wiretest.Client, during time.Duration) string {
	t.Helper()
	var told strings.Builder
	buffer := make([]byte, 8<<10)
	for end := time.Now().Add(during); time.Now().Before(end); {
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		synctest.Wait()
		_ = c.Conn().SetReadDeadline(time.Now().Add(time.Millisecond))
		n, _ := c.Conn().Read(buffer)
		told.Write(buffer[:n])
	}
	return told.String()
}
