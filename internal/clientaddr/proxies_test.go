package clientaddr_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/clientaddr"
)

func proxies(t testing.TB, texts ...string) (p clientaddr.Proxies) {
	t.Helper()
	for _, text := range texts {
		network, err := clientaddr.ParseProxy(text)
		if err != nil {
			t.Fatalf("ParseProxy(%q): %v", text, err)
		}
		p = append(p, network)
	}
	return p
}

// seen returns the RemoteAddr that a handler sees of a request.
func seen(p clientaddr.Proxies, remote string, forwarded ...string) (got string) {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": forwarded}}
	p.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(nil, r)
	return got
}

func TestClientBehindProxies(t *testing.T) {
	p := proxies(t, "10.1.0.0/16", "fd00::/8", "192.0.2.10")
	const proxy = "10.1.0.1:5000"
	for _, test := range []struct {
		what, remote string
		forwarded    []string
		want         string
	}{
		{"one address", proxy, []string{"198.51.100.1"}, "198.51.100.1:5000"},
		{"the client's own word before it", proxy, []string{"203.0.113.1, 198.51.100.1"}, "198.51.100.1:5000"},
		{"a word that is no address before it", proxy, []string{"unknown, 198.51.100.1"}, "198.51.100.1:5000"},
		{"a chain of proxies", proxy, []string{"203.0.113.1, 198.51.100.1 ,10.1.2.3,192.0.2.10"}, "198.51.100.1:5000"},
		{"several lines", proxy, []string{"203.0.113.1", "198.51.100.1, 10.1.2.3", "10.1.2.4"}, "198.51.100.1:5000"},
		{"IPv6", proxy, []string{"2001:db8::1"}, "[2001:db8::1]:5000"},
		{"IPv6 in brackets", proxy, []string{"[2001:db8::1]"}, "[2001:db8::1]:5000"},
		{"IPv6 with a port", proxy, []string{"[2001:db8::1]:443"}, "[2001:db8::1]:5000"},
		{"IPv4 with a port", proxy, []string{"198.51.100.1:443"}, "198.51.100.1:5000"},
		{"IPv4 in IPv6", proxy, []string{"::ffff:198.51.100.1"}, "198.51.100.1:5000"},
		{"a proxy's IPv4 in IPv6", proxy, []string{"198.51.100.1, ::ffff:10.1.2.3"}, "198.51.100.1:5000"},
		{"a proxy that connects by IPv4 in IPv6", "[::ffff:10.1.0.1]:5000", []string{"198.51.100.1"}, "198.51.100.1:5000"},
		{"a proxy that connects by IPv6", "[fd00::1]:5000", []string{"198.51.100.1"}, "198.51.100.1:5000"},

		{"proxies alone", proxy, []string{"10.1.0.2, 10.1.0.3"}, proxy},
		{"a word that is no address at the end", proxy, []string{"198.51.100.1, unknown"}, proxy},
		{"a word that is no address among proxies", proxy, []string{"198.51.100.1, x, 10.1.0.2"}, proxy},
		{"nothing at the end", proxy, []string{"198.51.100.1,"}, proxy},
		{"an empty line at the end", proxy, []string{"198.51.100.1", ""}, proxy},
		{"nothing", proxy, []string{""}, proxy},
		{"IPv4 in brackets", proxy, []string{"[198.51.100.1]"}, proxy},
		{"no header", proxy, nil, proxy},
		{"a client that is no proxy", "198.51.100.7:80", []string{"203.0.113.1"}, "198.51.100.7:80"},
		{"a client of which nothing is known", "pipe", []string{"203.0.113.1"}, "pipe"},
	} {
		if got := seen(p, test.remote, test.forwarded...); got != test.want {
			t.Errorf("%s: a request from %s with X-Forwarded-For %q counts for %s, want %s", test.what, test.remote, test.forwarded, got, test.want)
		}
	}
	if got := seen(nil, proxy, "198.51.100.1"); got != proxy {
		t.Errorf("without proxies a request counts for %s, want %s", got, proxy)
	}
	if got := seen(proxies(t, "0.0.0.0/0"), proxy, "198.51.100.1"); got != proxy {
		t.Errorf("if everybody is a proxy a request counts for %s, want %s", got, proxy)
	}
}

func TestForwardedHost(t *testing.T) {
	p := proxies(t, "10.1.0.0/16")
	for _, test := range []struct {
		remote string
		lines  []string
		want   string
	}{
		{"10.1.0.1:80", []string{"db.example.org"}, "db.example.org"},
		{"10.1.0.1:80", []string{"made.up", "also.made.up, db.example.org:8443"}, "db.example.org:8443"},
		{"10.1.0.1:80", nil, ""},
		{"198.51.100.7:80", []string{"made.up"}, ""},
	} {
		r := &http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-Host": test.lines}}
		got := "not called"
		p.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = clientaddr.ForwardedHost(r) })).ServeHTTP(nil, r)
		if got != test.want {
			t.Errorf("X-Forwarded-Host %q from %s is the host %q, want %q", test.lines, test.remote, got, test.want)
		}
	}
}

func TestParseProxy(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3":        "10.1.2.3/32",
		"10.1.2.3/16":     "10.1.0.0/16",
		"::1":             "::1/128",
		"fd00::7/8":       "fd00::/8",
		"::ffff:10.1.2.3": "10.1.2.3/32",
		"0.0.0.0/0":       "0.0.0.0/0",
	} {
		if got, err := clientaddr.ParseProxy(text); err != nil || got.String() != want {
			t.Errorf("ParseProxy(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "localhost", "10.1", "10.1.2.3/33", "10.1.2.3:80", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:10.1.2.3/104", " 10.1.2.3"} {
		if got, err := clientaddr.ParseProxy(text); err == nil {
			t.Errorf("ParseProxy(%q) = %s, want an error", text, got)
		}
	}
}

// FuzzForwardedFor compares with a reader that takes the whole header apart first, and
// looks at what must hold of every client that is found.
func FuzzForwardedFor(f *testing.F) {
	for _, text := range []string{"", "198.51.100.1", "a, 198.51.100.1,10.1.0.2", "[2001:db8::1]:443\n10.1.0.9", "::ffff:10.1.0.2", "198.51.100.1,,", "fe80::1%x", "[10.1.0.1]"} {
		f.Add(text)
	}
	p := proxies(f, "10.1.0.0/16")
	const proxy = "10.1.0.1:5000"
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		got := seen(p, proxy, lines...)
		if want := obviousClient(p, proxy, strings.Join(lines, ",")); got != want {
			t.Fatalf("X-Forwarded-For %q counts for %s, want %s", lines, got, want)
		}
		if client := netip.MustParseAddrPort(got); client.Port() != 5000 || got != proxy && p.Contain(client.Addr()) {
			t.Fatalf("X-Forwarded-For %q counts for %s, a proxy", lines, got)
		}
	})
}

func obviousClient(p clientaddr.Proxies, proxy, header string) string {
	entries := strings.Split(header, ",")
	for len(entries) > 0 {
		last := strings.Trim(entries[len(entries)-1], " \t")
		entries = entries[:len(entries)-1]
		addr, err := netip.ParseAddr(last)
		if err != nil {
			withPort := last
			if strings.HasSuffix(last, "]") {
				withPort += ":1"
			}
			both, err := netip.ParseAddrPort(withPort)
			if err != nil {
				return proxy
			}
			addr = both.Addr()
		}
		if addr = addr.WithZone("").Unmap(); !p.Contain(addr) {
			return netip.AddrPortFrom(addr, 5000).String()
		}
	}
	return proxy
}
