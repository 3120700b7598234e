//go:build unix

package trust_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wiretest"
)

// TestWireHost: SDKs come back to the host that hello names. It is the one that they asked for,
// and that a proxy was asked for only if the proxy is trusted.
func TestWireHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "db.example.org:9000"},
		{[]string{"--trusted-proxy", "127.0.0.1"}, "front.example.org"},
	} {
		p := startProcess(t, test.flags...)
		newClient(t, p, 1).must(t, request{method: "PUT", target: "/a.json?auth=" + secret, body: "1"})
		trusted, err := p.trusted()
		if err != nil {
			t.Fatal(err)
		}
		link, err := wiretest.Connect(wiretest.Dialing{
			Address: p.address(), Target: "/.ws?v=5&ns=default", Host: "db.example.org:9000",
			Header: http.Header{"X-Forwarded-Host": {"made.up.example, front.example.org"}, "X-Forwarded-For": {"203.0.113.7"}},
			TLS:    &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		hello, err := link.Next()
		link.Close()
		if err != nil || !strings.Contains(hello, `"h":"`+test.want+`"`) {
			t.Errorf("with %v hello is %s, %v, want h %s", test.flags, hello, err, test.want)
		}
	}
}
