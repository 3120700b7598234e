package cli_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/cli"
)

// TestSpelled: what a flag does not take is told in our words, also where pflag has its own.
func TestSpelled(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Bool("switch", false, "")
	flags.Int("number", 0, "")
	flags.Duration("time", time.Second, "")
	for name, want := range map[string]string{
		"switch": "--switch=x: it must be true or false",
		"number": "--number=x: it must be a whole number",
		"time":   "--time=x: it must be a time such as 500ms, 30s or 2m",
	} {
		if err := cli.FlagError("test", flags, flags.Parse([]string{"--" + name + "=x"})); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := cli.Set(flags.Lookup("number"), "5"); err != nil {
		t.Error(err)
	}
}
