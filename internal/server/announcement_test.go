package server

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestTryWithSecrets: the line to try takes one secret of a file that may hold several. A shell would take the next for the
// address of another request, and look for it in the DNS.
func TestTryWithSecrets(t *testing.T) {
	t.Parallel()
	f := &founder{secretsDir: t.TempDir()}
	if err := os.WriteFile(f.secretFile("default"), []byte("first\nsecond\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := announcement{Config: Config{DefaultDatabase: "default"}, founder: f}
	text := a.forScripts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9000})
	if want := "/.json'?auth='$(head -n 1 " + f.secretFile("default") + ")\n"; !strings.HasSuffix(text, want) {
		t.Errorf("the announcement is\n%s\nwant it to end with %s", text, want)
	}
}

// TestTryWithoutDefault: nothing is named to try that the server would answer 417.
func TestTryWithoutDefault(t *testing.T) {
	t.Parallel()
	for dev, want := range map[bool]string{
		false: "  no default database: requests name one, which livetree db create makes\n",
		true:  "  --dev: everybody on this machine can read and write\n",
	} {
		a := announcement{Config: Config{Dev: dev}, founder: &founder{secretsDir: t.TempDir()}}
		text := a.forScripts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9000})
		if !strings.HasSuffix(text, want) || strings.Contains(text, "try") {
			t.Errorf("with --dev=%t the announcement is\n%s\nwant it to end with %s", dev, text, want)
		}
	}
}
