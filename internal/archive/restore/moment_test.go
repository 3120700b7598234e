package restore_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive/restore"
)

// TestParseMoment tells a commit of a database from a time.
func TestParseMoment(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(5)
	for text, want := range map[string]restore.Moment{
		"":                     {},
		"shop:17":              {Database: "shop", Position: 17},
		"14:05":                {Time: at},
		"2026-11-15T14:05:00Z": {Time: at},
		"10m":                  {Time: at},
	} {
		got, err := restore.ParseMoment(text, func(string) (time.Time, error) { return at, nil })
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}
