package adminsdk

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// binary is the livetree command, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "livetree-adminsdk")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if os.Getenv(keyVariable) != "" || os.Getenv(insideVariable) != "" {
		return m.Run() // a part of a test, which knows where the binary is
	}
	binary = filepath.Join(dir, "livetree")
	build := exec.Command("go", "build", "-o", binary, "./cmd/livetree")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build livetree: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A process is a running server.
type process struct {
	data string
	addr string // host:port
}

var listening = regexp.MustCompile(`listening on https://(\S+)`)

// start runs a server until the test ends.
func start(t *testing.T, args ...string) process {
	t.Helper()
	p := process{data: t.TempDir()}
	args = append([]string{"serve", "--data", p.data, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, args...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "LIVETREE_SECRET="+secret)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			p.addr = match[1]
			go func() { // the rest of its output is for people
				for lines.Scan() {
				}
			}()
			return p
		}
	}
	t.Fatal("the server ended before it was ready")
	return p
}

// command runs a command that must succeed and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return string(out)
}
