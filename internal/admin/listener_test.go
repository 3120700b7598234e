package admin_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/admin"
)

// patience is how long a test waits for what should come at once, on a machine
// that has much else to do.
const patience = 3 * time.Minute

// TestMain wants no goroutine to be left. By itself goleak waits for less than half
// a second.
func TestMain(m *testing.M) {
	code := m.Run()
	for deadline := time.Now().Add(patience); code == 0; {
		err := goleak.Find()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// plainGet asks without a credential.
func plainGet(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func listen(t *testing.T, addr string) *admin.Listener {
	t.Helper()
	l, err := admin.Listen(admin.ListenerOptions{Addr: addr, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestListenerAnswersWhileTheServerStarts: alive, not ready, and nothing else.
func TestListenerAnswersWhileTheServerStarts(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/metrics": 503, "/v1/databases": 503} {
		if status, text := plainGet(t, l.URL()+path); status != want {
			t.Errorf("%s of a server that starts = %d %s, want %d", path, status, text, want)
		}
	}
	if _, text := plainGet(t, l.URL()+"/readyz"); !strings.Contains(text, `"replay","state":"running","result":"fail"`) {
		t.Errorf("/readyz = %s, want that the replay is running", text)
	}
	dir := t.TempDir()
	if err := l.Serve(newStand(t, nil).handler, dir); err != nil {
		t.Fatal(err)
	}
	if status, text := plainGet(t, l.URL()+"/readyz"); status != 200 {
		t.Errorf("/readyz = %d %s, want 200", status, text)
	}
	if text, err := os.ReadFile(filepath.Join(dir, admin.AddrFile)); err != nil || string(text) != l.URL()+"\n" {
		t.Errorf("the address is noted as %q, %v", text, err)
	}
}

func TestListenerWithoutTLSIsForThisMachineAlone(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:0"} {
		if l, err := admin.Listen(admin.ListenerOptions{Addr: addr, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("Listen(%s) without TLS = %v, want that it is refused", addr, err)
			_ = l.Close()
		}
	}
}

// TestDefaultPortInUse: a second server on the machine starts all the same.
func TestDefaultPortInUse(t *testing.T) {
	if taken, err := net.Listen("tcp", admin.DefaultAddr); err == nil { // else it is in use already
		defer taken.Close()
	}
	l := listen(t, admin.DefaultAddr)
	if strings.HasSuffix(l.URL(), ":9001") { // whoever used it does not any more, but now we do
		l = listen(t, admin.DefaultAddr)
	}
	if status, _ := plainGet(t, l.URL()+"/livez"); status != 200 || strings.HasSuffix(l.URL(), ":9001") {
		t.Errorf("%s/livez = %d, want 200 on another port", l.URL(), status)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = admin.Listen(admin.ListenerOptions{Addr: taken.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "the port is in use") {
		t.Errorf("Listen on a port in use = %v, want that it says so", err)
	}
}

func TestCredentialIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "admin")
	first, err := admin.LoadCredential(dir)
	if err != nil || len(first) != 40 {
		t.Fatalf("the credential has %d characters, %v; want 40", len(first), err)
	}
	if again, err := admin.LoadCredential(dir); err != nil || again != first {
		t.Errorf("the credential is another the second time, %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, admin.TokenFile), []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.LoadCredential(dir); err == nil || strings.Contains(err.Error(), "short\n") {
		t.Errorf("a file without a credential = %v, want an error", err)
	}
}
