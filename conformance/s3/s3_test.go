package s3

import (
	"flag"
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

var losses = flag.Bool("losses", false, "lose 50 machines instead of two")

// TestGateway runs the tests of the archive that take an endpoint: what it asks of a service, and
// machines that are lost.
func TestGateway(t *testing.T) {
	endpoint := gateway(t)
	runTest(t, "-run", "^TestService$", "./internal/archive/place/s3", "-s3.endpoint", endpoint)
	lost := []string{"-run", "^TestMachineIsLost$", "./trust", "-s3.endpoint", endpoint}
	if *losses {
		lost = append(lost, "-long")
	}
	runTest(t, lost...)
}

// runTest runs a test of the main module.
func runTest(t *testing.T, args ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"test", "-count=1", "-timeout", "30m", "-v"}, args...)...)
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=very-secret")
	out, err := command.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
