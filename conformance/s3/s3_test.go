package s3

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// gateway builds and starts the gateway with one bucket, and returns its URL.
func gateway(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "versitygw")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/versity/versitygw/cmd/versitygw").CombinedOutput(); err != nil {
		t.Fatalf("build versitygw: %v\n%s", err, out)
	}
	root, sidecar := filepath.Join(dir, "root"), filepath.Join(dir, "sidecar")
	for _, made := range []string{filepath.Join(root, "bucket"), sidecar} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	command := exec.Command(binary, "--port", addr, "--access", "id", "--secret", "very-secret", "posix", "--sidecar", sidecar, root)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	for range 300 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return "http://" + addr
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("versitygw does not listen")
	return ""
}

// TestGateway runs the tests of internal/archive/place/s3 that take an endpoint.
func TestGateway(t *testing.T) {
	command := exec.Command("go", "test", "-count=1", "-timeout", "5m", "-v", "-run", "^TestService$",
		"./internal/archive/place/s3", "-s3.endpoint", gateway(t))
	command.Dir = filepath.Join("..", "..")
	out, err := command.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
