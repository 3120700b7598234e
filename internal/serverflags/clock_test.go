package serverflags_test

import (
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/serverflags"
)

// TestClockOffset: the variable shifts the clock, and what is no time is refused by its name.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "5m": 5 * time.Minute, "-5m": -5 * time.Minute, "90s": 90 * time.Second} {
		got, err := serverflags.ClockOffset(func(string) (string, bool) { return text, true })
		if err != nil || got != want {
			t.Errorf("%q shifts the clock by %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := serverflags.ClockOffset(func(string) (string, bool) { return "5m", false }); got != 0 || err != nil {
		t.Errorf("a variable that is not set shifts the clock by %v, %v", got, err)
	}
	for _, text := range []string{"5", "five minutes", "+-5m", "13h", "-100h", "5m "} {
		_, err := serverflags.ClockOffset(func(string) (string, bool) { return text, true })
		if err == nil || !strings.Contains(err.Error(), serverflags.ClockVariable) || !strings.Contains(err.Error(), "such as 5m or -5m") {
			t.Errorf("%q is taken for a time: %v", text, err)
		}
	}
}
