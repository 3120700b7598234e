package server

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesThatNoRequestHas: a name or an origin with a mistake in it is refused with the flag it is of, and not left without
// effect.
func TestNamesThatNoRequestHas(t *testing.T) {
	t.Parallel()
	domain := func(c *Config, text string) { c.Domain = text }
	mapped := func(c *Config, text string) { c.HostMap = map[string]string{text: "default"} }
	host := func(c *Config, text string) { c.DevHosts = []string{"localhost", text} }
	origin := func(c *Config, text string) { c.DevOrigins = []string{"https://app.example.com", text} }
	for _, set := range []struct {
		flag      string
		in        func(*Config, string)
		good, bad []string
	}{
		{"--domain", domain, []string{"", "db.example.com", "DB.example.com", "localhost", "my_db", "xn--bcher-kva.example"},
			[]string{"a b", "*.example.com", "https://example.com", "example.com:9000", "example.com.", ".example.com", "bücher.example", "::1"}},
		{"--host-map", mapped, []string{"shop.example.com", "127.0.0.1", "::1", "my_host"},
			[]string{"", "https://shop.example.com", "shop.example.com:9000", "[::1]", "shop.example.com/x"}},
		{"--dev-host", host, []string{"box", "my_host", "10.0.0.1"}, []string{"", "http://box", "box:9000", "%%"}},
		{"--dev-origin", origin, []string{"null", "http://app.example.com:8080", "HTTPS://App.example.com", "capacitor://localhost", "http://[fd00::1]:80"},
			[]string{"", "app", "app.example.com", "https://app.example.com/", "https://app.example.com/x", "https://ann@app.example.com", "https://", "https://a?b"}},
	} {
		for i, text := range append(set.good, set.bad...) {
			c := Config{Data: filepath.Join(t.TempDir(), "data"), Logger: slog.New(slog.DiscardHandler)}
			set.in(&c, text)
			err := c.check()
			if good := i < len(set.good); good && err != nil || !good && (err == nil || !strings.HasPrefix(err.Error(), set.flag+" "+text+": it must be ")) {
				t.Errorf("%s %q: %v, want it accepted: %t", set.flag, text, err, good)
			}
		}
	}
}
