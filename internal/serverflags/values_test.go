package serverflags

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/server"
)

// TestValues: what a value prints, it takes, and prints again.
func TestValues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value       pflag.Value
		given, want string
	}{
		{new(cli.ByteSize), "0", "0B"},
		{new(cli.ByteSize), "1024", "1KiB"},
		{new(cli.ByteSize), "1025B", "1025B"},
		{new(cli.ByteSize), "3GiB", "3GiB"},
		{new(cli.ByteSize), "1024MiB", "1GiB"},
		{new(cli.Duration), "90s", "1m30s"},
		{new(cli.Duration), "120s", "2m"},
		{new(cli.Duration), "60m", "1h"},
		{new(cli.Duration), "3610s", "1h0m10s"},
		{new(cli.Duration), "1.5s", "1.5s"},
		{new(cli.Count), "5", "5"},
		{new(LogKeep), "90m,1024KiB", "1h30m,1MiB"},
		{new(RateLimit), "off", "off"},
		{new(RateLimit), "100/s", "100/s,100"},
		{new(RateLimit), "600/m", "10/s,10"},
		{new(RateLimit), "30/m", "30/m,1"},
		{new(RateLimit), "1/h,5", "1/h,5"},
		{new(RateLimit), "7/h", "7/h,1"},
		{HostMap{}, "B.example=b,a.example=a", "a.example=a,b.example=b"},
		{new(cli.List), "a,b", "a,b"},
		{&cli.Choice{Words: []string{"a", "b"}}, "b", "b"},
	}
	for _, test := range tests {
		if err := test.value.Set(test.given); err != nil || test.value.String() != test.want {
			t.Errorf("%T %s is %s, %v; want %s", test.value, test.given, test.value, err, test.want)
		}
		if _, isList := test.value.(*cli.List); isList {
			continue // it adds
		}
		if err := test.value.Set(test.want); err != nil || test.value.String() != test.want {
			t.Errorf("%T %s is %s, %v", test.value, test.want, test.value, err)
		}
	}
	if r := (RateLimit{PerSecond: 1.0 / 7, Burst: 1}); r.String() == rateOff {
		t.Errorf("%+v prints as off", server.RateLimit(r))
	}
}

// TestHooks: 0 would be taken for the default, so it is refused.
func TestHooks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hook-spool", "hook-retry"} {
		var h server.Hooks
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		Hooks(flags, &h)
		was := flags.Lookup(name).Value.String()
		for _, bad := range []string{"0", "0s", "x"} {
			if err := flags.Set(name, bad); err == nil || flags.Lookup(name).Value.String() != was {
				t.Errorf("--%s %s is taken, and is %v now", name, bad, flags.Lookup(name).Value)
			}
		}
	}
}
