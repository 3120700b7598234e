package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/client"
)

// beStranger tells the process that TestFilesOfOthers starts to go on as a user who owns none of the files.
const beStranger = "LIVETREE_TEST_BE_STRANGER"

// TestFilesOfOthers: files of another user lead an operator nowhere, and are not trusted. It runs itself again as a user who
// does not own them.
func TestFilesOfOthers(t *testing.T) {
	const owner, stranger = 4711, 4712
	if os.Getenv(beStranger) != "" {
		// The directories above may be closed to the stranger, so it reads its working directory, which root entered.
		if err := syscall.Setuid(stranger); err != nil {
			t.Fatal(err)
		}
		err := listDatabases(".", "", "horse")
		if err == nil || !strings.Contains(err.Error(), "belongs to somebody else") || !strings.Contains(err.Error(), "--admin-url") {
			t.Errorf("db list beside files of another user: %v, want them refused", err)
		}
		if _, err := client.New(client.Options{URL: "https://127.0.0.1:9000", Data: "."}); err != nil {
			t.Errorf("a client beside the certificate of another user: %v, want it left alone", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can have files of another user")
	}
	n := noted{t, t.TempDir()}
	n.write("http://127.0.0.1:1\n", "admin", "addr")
	n.write("no certificate", "tls", "ca.pem")
	if err := os.Chmod(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin/addr", "tls/ca.pem"} {
		if err := os.Chown(filepath.Join(n.dir, name), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	again := exec.Command("/proc/self/exe", "-test.run=^TestFilesOfOthers$")
	again.Dir, again.Env = n.dir, append(os.Environ(), beStranger+"=yes")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
