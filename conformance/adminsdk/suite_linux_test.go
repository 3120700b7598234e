package adminsdk

import (
	"bytes"
	native "encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// The SDK's own integration suite talks to PROJECT.firebaseio.com at port 443. So
// that this leads to our server, the suite runs in namespaces of its own: there it
// may have another /etc/hosts, a low port, and no way out to the network.

const (
	suiteVariable = "LIVETREE_ADMIN_SUITE" // asks for the suite to be run

	suiteProject = "livetree-suite"
	suiteHost    = suiteProject + ".firebaseio.com"
	// suiteTests is how many tests the suite of this version has.
	suiteTests = 38
)

// TestSuite runs the integration suite of the SDK, unmodified.
func TestSuite(t *testing.T) {
	if os.Getenv(suiteVariable) == "" {
		t.Skipf("the SDK's own suite is run by make adminsuite, which sets %s", suiteVariable)
	}
	dir := t.TempDir()
	suite := filepath.Join(dir, "db.test")
	command(t, "go", "test", "-c", "-o", suite, "firebase.google.com/go/v4/integration/db")
	module := strings.TrimSpace(command(t, "go", "list", "-m", "-f", "{{.Dir}}", "firebase.google.com/go/v4"))
	for _, name := range []string{"dinosaurs.json", "dinosaurs_index.json"} {
		text, err := os.ReadFile(filepath.Join(module, "testdata", name))
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, "testdata"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "testdata", name), text, 0o600))
	}
	self, err := os.Executable()
	must(t, err)
	inside := exec.Command(self, "-test.run", "^TestSuiteInside$", "-test.v")
	inside.Env = append(os.Environ(), insideVariable+"="+dir, "LIVETREE_SUITE_BINARY="+binary)
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := inside.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: this system does not let us have namespaces of our own: %v", err)
	}
	if bytes.Contains(out, []byte("--- SKIP: TestSuiteInside")) {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: %s", out)
	}
	passed, failed := countTests(out)
	t.Logf("of the %d tests of the suite %d passed", suiteTests, passed)
	if err != nil || len(failed) > 0 || passed != suiteTests {
		t.Errorf("failed: %v (%v)\n%s", failed, err, out)
	}
}

var outcomes = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (Test\w+)`)

// countTests reads what a verbose test binary has printed.
func countTests(out []byte) (passed int, failed []string) {
	for _, match := range outcomes.FindAllSubmatch(out, -1) {
		switch name := string(match[2]); {
		case name == "TestSuiteInside":
		case string(match[1]) == "PASS":
			passed++
		default:
			failed = append(failed, name)
		}
	}
	return passed, failed
}

// TestSuiteInside is the part of TestSuite that runs in the namespaces.
func TestSuiteInside(t *testing.T) {
	dir := os.Getenv(insideVariable)
	if dir == "" {
		t.Skip("a part of TestSuite")
	}
	binary = os.Getenv("LIVETREE_SUITE_BINARY")
	hosts := filepath.Join(dir, "hosts")
	must(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost "+suiteHost+"\n"), 0o600))
	for _, err := range []error{
		raiseLoopback(),
		syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount(hosts, "/etc/hosts", "", syscall.MS_BIND, ""),
	} {
		if errors.Is(err, fs.ErrPermission) {
			t.Skipf("this system does not let us do anything in namespaces of our own: %v", err)
		}
		must(t, err)
	}
	p := start(t, "--addr", "127.0.0.1:443", "--domain", "firebaseio.com", "--default-db", suiteProject, "--dialect", "firebase")
	p.createAccount(t, "suite", suiteProject, "https://"+suiteHost, filepath.Join(dir, "testdata", "integration_cert.json"))
	work := filepath.Join(dir, "integration", "db")
	must(t, os.MkdirAll(work, 0o700))
	suite := exec.Command(filepath.Join(dir, "db.test"), "-test.v")
	suite.Dir = work
	suite.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(p.data, "tls", "ca.pem"))
	suite.Stdout, suite.Stderr = os.Stdout, os.Stdout
	if err := suite.Run(); err != nil {
		t.Errorf("the suite: %v", err)
	}
}

// raiseLoopback brings up the loopback interface of a new network namespace.
func raiseLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	var request [40]byte // struct ifreq: a name of 16 bytes and flags
	copy(request[:], "lo")
	native.NativeEndian.PutUint16(request[16:], syscall.IFF_UP|syscall.IFF_RUNNING)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return fmt.Errorf("bring up the loopback interface: %w", errno)
	}
	return nil
}
