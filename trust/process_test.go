//go:build unix

package trust_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

const secret = "tRuStTrUsTtRuStTrUsTtRuStTrUsTtRuStTrUsT"

// patience is how long anything is waited for that should come at once. It is no
// measure of speed: the machine may be busy.
const patience = 3 * time.Minute

// A server that is asked to end takes connections for drainAccept. It answers what
// is sent within drainTime for certain: only then does it close connections that
// wait for a request, and one may be on its way.
const (
	drainAccept = 100 * time.Millisecond
	drainTime   = drainAccept + 250*time.Millisecond
)

var command = proof.NewCommand()

// TestMain turns the test binary into a server whose disk fails, or a client that is killed, if it
// is asked to.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(leaverVariable); ok {
		runLeaver(text)
	}
	if text, ok := os.LookupEnv(faultVariable); ok {
		runFaultyServer(text)
	}
	proof.SideBySide(4)
	// The credentials of s3test.
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "id")
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
	os.Exit(command.Run(m))
}

// A process is a server that can be killed. It keeps its data.
type process struct {
	dir   string
	flags []string
	env   []string
	// binary is the command, that under test if it is empty.
	binary string
	// openFiles, if set, is how many files it may have open.
	openFiles int
	// socket, if set, is its port, which outlives it.
	socket *os.File

	log text // what it says on the standard error, over all its lives
	// addr is where it serves HTTPS, a string: another one after each start, since
	// somebody may have taken the old one.
	addr atomic.Value

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan error // gets how the process ended
}

// startProcess runs a server until the test ends.
func startProcess(t *testing.T, flags ...string) *process {
	t.Helper()
	return startProcessOn(t, t.TempDir(), flags...)
}

// startProcessOn runs a server on a data directory.
func startProcessOn(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	p := &process{dir: dir, flags: flags}
	p.watchOver(t)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// watchOver ends the process with the test, and fails that if the server has told of
// a defect.
func (p *process) watchOver(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		p.kill()
		for _, alarm := range []string{"DATA RACE", "panic", "fatal error"} {
			if strings.Contains(p.log.String(), alarm) {
				t.Errorf("the server says %q", alarm)
			}
		}
		if t.Failed() {
			said := p.log.String()
			t.Logf("the server said first:\n%.4000s", said)
			t.Logf("and last:\n%s", said[max(min(4000, len(said)), len(said)-4000):])
		}
	})
}

var listening = regexp.MustCompile(`listening on https://(\S+)`)

// prepare returns the process, which is not started.
func (p *process) prepare() (*exec.Cmd, error) {
	file, err := command.File()
	if p.binary != "" {
		file, err = p.binary, nil
	}
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--data", p.dir, "--addr", "127.0.0.1:0", "--drain-accept", drainAccept.String(), "--drain-requests", patience.String()}
	// A flag that comes later wins, so that a test can have it otherwise.
	args = append(append(args, "--admin-addr", "", "--log-level", "WARN"), p.flags...)
	c := exec.Command(file, args...)
	if p.openFiles > 0 {
		limited := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, p.openFiles)
		c = exec.Command("sh", append([]string{"-c", limited, file}, args...)...)
	}
	if p.socket != nil {
		c = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=addr exec "$0" "$@"`, file}, args...)...)
		c.ExtraFiles = []*os.File{p.socket}
	}
	c.Env = append(append(os.Environ(), "LIVETREE_SECRET="+secret), p.env...)
	return c, nil
}

// launch starts the process and does not wait until it serves.
func (p *process) launch() (out io.Reader, err error) {
	c, err := p.prepare()
	if err != nil {
		return nil, err
	}
	c.Stderr = &p.log
	pipe, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command, p.ended = c, make(chan error, 1)
	return pipe, nil
}

// start starts the process and returns when it serves.
func (p *process) start() error {
	out, err := p.launch()
	if err != nil {
		return err
	}
	late := time.AfterFunc(patience, p.kill)
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			p.addr.Store(found[1])
			go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the process
			return nil
		}
	}
	p.kill()
	return fmt.Errorf("the server does not start:\n%s", p.log.String())
}

// address returns where the process serves, or did last.
func (p *process) address() string {
	addr, _ := p.addr.Load().(string) // none before the first start
	return addr
}

// kill ends the process as a power failure would, but for the disk.
func (p *process) kill() { _ = p.end(os.Kill) }

// terminate asks the process to end, and returns how it did.
func (p *process) terminate() error { return p.end(syscall.SIGTERM) }

func (p *process) end(by os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return nil
	}
	_ = p.command.Process.Signal(by) // it may be gone already
	late := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	err := p.command.Wait()
	p.command = nil
	return err
}

// signal sends a signal and does not wait.
func (p *process) signal(s os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return errors.New("the server does not run")
	}
	return p.command.Process.Signal(s)
}

// pid returns the number of the process, 0 if it does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return 0
	}
	return p.command.Process.Pid
}

// trusted returns the authority of the server's certificate.
func (p *process) trusted() (*x509.CertPool, error) { return authority(p.dir) }

// authority returns the one in a data directory.
func authority(dir string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca.pem holds no certificate")
	}
	return pool, nil
}

// A text is written by one goroutine and read by others.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Clone(t.buf.String())
}
