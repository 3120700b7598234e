package cli_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cli"
)

// TestParseMoment reads moments as people write them.
func TestParseMoment(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 11, 15, 14, 5, 30, 0, zone)
	for text, want := range map[string]string{
		"2026-11-15T10:00:00Z":         "2026-11-15T10:00:00Z",
		"2026-11-15T10:00:00.25+01:00": "2026-11-15T09:00:00.25Z",
		"14:05":                        "2026-11-15T12:05:00Z",
		"14:05:30":                     "2026-11-15T12:05:30Z",
		"14:06":                        "2026-11-14T12:06:00Z",
		"0:00":                         "2026-11-14T22:00:00Z",
		"00:00":                        "2026-11-14T22:00:00Z",
		"10m":                          "2026-11-15T11:55:30Z",
		"36h":                          "2026-11-14T00:05:30Z",
		"0s":                           "",
		"-5m":                          "",
		"25:00":                        "",
		"yesterday":                    "",
		"":                             "",
		"2026-11-15":                   "",
	} {
		got, err := cli.ParseMoment(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %s", text, got)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
}
