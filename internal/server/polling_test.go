package server

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wiretest"
)

// TestPollingByEveryProtocol: browsers poll over whatever they have: a lane, net/http or
// HTTP/2. When the server stops, polls that are held are told so.
func TestPollingByEveryProtocol(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	var pollers []*wiretest.Poller
	for _, version2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.authority(), ServerName: "localhost"}, Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(!version2)
		transport.Protocols.SetHTTP2(version2)
		t.Cleanup(transport.CloseIdleConnections)
		p := wiretest.Poll(t, wiretest.Over(&http.Client{Transport: transport}, m.public), "", "")
		if hello, err := p.Next(); err != nil || !strings.Contains(hello, `"h":"`+strings.TrimPrefix(m.public, "https://")+`"`) {
			t.Fatalf("%s, %v", hello, err)
		}
		for range 3 {
			p.Send(`{"t":"c","d":{"t":"p","d":{}}}`)
			p.Expect(`{"t":"c","d":{"t":"o","d":{}}}`)
		}
		p.Send(`{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":1}}}`)
		p.Expect(`{"t":"d","d":{"r":1,"b":{"s":"permission_denied","d":"Permission denied"}}}`)
		pollers = append(pollers, p)
	}
	began := time.Now()
	m.stop()
	for _, p := range pollers {
		p.Expect("")
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the server has stopped after %v: polls are held for 20 seconds", took)
	}
}
