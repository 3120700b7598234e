package deliver_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/hook"
)

// receivers finds the receivers in the manual.
var receivers = regexp.MustCompile("(?s)```(go|js|python) receiver\n(.*?)```")

// TestReceivers runs the receivers of docs/triggers.md: they take what is signed, refuse the rest, and deal with each id once. Those
// whose language is not installed are skipped.
func TestReceivers(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/triggers.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := receivers.FindAllStringSubmatch(string(manual), -1)
	if len(blocks) != 3 {
		t.Fatalf("the manual has %d receivers, want 3", len(blocks))
	}
	commands := map[string][]string{"go": {"go", "run"}, "js": {"node"}, "python": {"python3"}}
	names := map[string]string{"go": "receiver.go", "js": "receiver.js", "python": "receiver.py"}
	for _, block := range blocks {
		language, text := block[1], block[2]
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			command := commands[language]
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			file := filepath.Join(t.TempDir(), names[language])
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if language == "go" { // so that the process that is ended is the receiver
				built := filepath.Join(t.TempDir(), "receiver")
				if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, file).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				command, file = nil, built
			}
			tryReceiver(t, append(command, file))
		})
	}
}

func tryReceiver(t *testing.T, command []string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(freeaddr.One(t))
	run := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	run.Env = append(os.Environ(), "SECRET="+secret, "PORT="+port)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"msg_1","event":"create"}`)
	now := time.Now().Unix()
	good, err := hook.Sign([]string{"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", secret}, "msg_1", now, body)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := hook.Sign([]string{secret}, "msg_1", now-3600, body)
	for _, try := range []struct {
		signature string
		seconds   int64
		want      int
	}{{good, now, 204}, {good, now, 204}, {strings.Replace(good, ",", ",A", 2), now, 401}, {"", now, 401}, {old, now - 3600, 401}} {
		if status := post(t, port, try.signature, try.seconds, body); status != try.want {
			t.Errorf("the signature %q was answered %d, want %d: %s", try.signature, status, try.want, &out)
		}
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	if text := strings.TrimSpace(out.String()); text != string(body) {
		t.Errorf("the receiver has dealt with %q, want %q once", text, body)
	}
}

// post sends a body, and waits until the receiver has started.
func post(t *testing.T, port, signature string, seconds int64, body []byte) int {
	t.Helper()
	for range 200 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%s/", port), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {strconv.FormatInt(seconds, 10)}, "Webhook-Signature": {signature}}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			return answer.StatusCode
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // another process starts
	}
	t.Fatal("the receiver does not start")
	return 0
}
