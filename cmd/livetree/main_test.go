package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/proof"
)

// commandVariable makes the test binary the command.
const commandVariable = "LIVETREE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
	}
	owneronly.Umask() // as main does, for the commands that run in this process
	proof.SideBySide(8)
	testscript.Main(m, map[string]func(){"livetree": main})
}

// A console is what the command prints to. It can ask the command to stop when
// it says that it is ready.
type console struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan<- os.Signal
	at    string // what it says then; readyText if empty
}

const readyText = "listening on https://"

func (t *console) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready != nil && bytes.Contains(p, []byte(cmp.Or(t.at, readyText))) {
		t.ready <- syscall.SIGTERM
	}
	return t.text.Write(p)
}

func (t *console) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// command runs the command in this process. A server is stopped when it is
// ready.
func command(args ...string) (code int, stdout, stderr string) {
	return commandWith("", args...)
}

// commandWith runs the command with an input.
func commandWith(stdin string, args ...string) (code int, stdout, stderr string) {
	signals := make(chan os.Signal, 2)
	out, errs := &console{ready: signals}, &console{}
	a := newApp()
	a.stdin, a.stdout, a.stderr = strings.NewReader(stdin), out, errs
	// Without a list, cobra would take the arguments of the test binary.
	code = run(signals, a, append([]string{}, args...))
	return code, out.String(), errs.String()
}

// oneLine reports whether a text is what an operator should see of an error.
func oneLine(text string) bool {
	return strings.HasPrefix(text, "livetree: ") && strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n")
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"--help"}, {"-h"}} {
		code, out, errs := command(args...)
		if code != 0 || !strings.Contains(out, "  serve ") || !strings.Contains(out, "  help ") || errs != "" {
			t.Errorf("livetree %q: exit %d, %q, %q; want the commands", args, code, out, errs)
		}
	}
	if code, out, errs := command(); code != 1 || out != "" || !strings.Contains(errs, "  serve ") {
		t.Errorf("livetree: exit %d, %q, %q; want the commands as an error", code, out, errs)
	}
	for _, args := range [][]string{{"help", "serve"}, {"serve", "--help"}} {
		code, out, errs := command(args...)
		if code != 0 || !strings.Contains(out, "--data") || !strings.Contains(out, "LIVETREE_") || errs != "" {
			t.Errorf("livetree %q: exit %d, %q, %q; want the flags", args, code, out, errs)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir()) // in case a server starts
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"sevre"}, `unknown command "sevre": did you mean "serve"?`},
		{[]string{"sevre", "--data", "x"}, `unknown command "sevre": did you mean "serve"?`},
		{[]string{"rules", "chekc", "--strict"}, `unknown command "rules chekc": did you mean "check"?`},
		{[]string{"help", "rules", "chekc"}, `unknown command "rules chekc"`},
		{[]string{"--serve"}, "unknown flag --serve; livetree --help"},
		{[]string{"serve", "now"}, `serve takes no arguments, but was given "now"`},
		{[]string{"serve", "--default-db", "Not a name"}, "invalid database name"},
		{[]string{"serve", "--dev", "--addr", "0.0.0.0:0"}, "--dev"},
		{[]string{"serve", "--no-such-flag"}, "unknown flag --no-such-flag; livetree serve --help"},
		{[]string{"serve", "--adr", ":9000"}, "unknown flag --adr: did you mean --addr?"},
		{[]string{"serve", "-data", "here"}, "unknown flag -data: did you mean --data?"},
		{[]string{"serve", "--cache", "much"}, "--cache=much: it must be a number with"},
		{[]string{"serve", "--cache", "-1"}, "--cache=-1: it must be"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level=loud"},
		{[]string{"serve", "--max-body", "1TB"}, "--max-body=1TB"},
		{[]string{"serve", "--data"}, "--data needs a value"},
	}
	for _, test := range tests {
		code, out, errs := command(test.args...)
		if code != 1 || out != "" || !oneLine(errs) || !strings.Contains(errs, test.want) {
			t.Errorf("livetree %q: exit %d, %q, %q; want exit 1 and one line with %q", test.args, code, out, errs, test.want)
		}
	}
}

// TestEveryCommandExplainsItself: see the package comment.
func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s lacks a Short, a Long or an Example", c.CommandPath())
		}
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(newRootCommand(newApp()))
}

func TestWrongEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"LIVETREE_MAX_BODY":  "much",
		"LIVETREE_DEV":       "perhaps",
		"LIVETREE_LOG_LEVEL": "loud",
		"LIVETREE_HOST_MAP":  "example.com",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			code, out, errs := command("serve", "--data", filepath.Join(t.TempDir(), "data"))
			if code != 1 || out != "" || !oneLine(errs) || !strings.Contains(errs, name) {
				t.Errorf("exit %d, %q, %q; want exit 1 and one line with the variable", code, out, errs)
			}
		})
	}
}

// serving are the flags of a server that gets in nobody's way.
func serving(dir string, more ...string) []string {
	return append([]string{"serve", "--data", dir, "--addr", ownHost() + ":0", "--admin-addr", ""}, more...)
}

func TestEnvironmentAndFlags(t *testing.T) {
	fromEnvironment, fromFlag := filepath.Join(t.TempDir(), "environment"), filepath.Join(t.TempDir(), "flag")
	t.Setenv("LIVETREE_DATA", fromEnvironment)
	t.Setenv("LIVETREE_ADDR", "127.0.0.1:0")
	t.Setenv("LIVETREE_DEFAULT_DB", "chosen")
	code, out, errs := command("serve")
	if code != 0 || !strings.Contains(out, readyText) || !strings.Contains(out, `"chosen"`) {
		t.Errorf("livetree serve: exit %d, %q, %q", code, out, errs)
	}
	if !exists(filepath.Join(fromEnvironment, "LIVETREE")) {
		t.Errorf("there is no data directory at %s", fromEnvironment)
	}
	if code, _, errs := command("serve", "--data", fromFlag); code != 0 || !exists(filepath.Join(fromFlag, "LIVETREE")) {
		t.Errorf("livetree serve --data: exit %d, %q; want the flag to win", code, errs)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoriesThatCannotBeServed: one clear line, and the code that says whose
// turn it is.
func TestDirectoriesThatCannotBeServed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		code    int
		want    string
	}{
		{"foreign", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "notes.txt"), "mine") }, 1, "not a Livetree data directory"},
		{"a file", func(t *testing.T, dir string) { write(t, dir, "mine") }, 1, "not a directory"},
		{"newer", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "LIVETREE"), "livetree data directory, format 9\n")
		}, 1, "newer Livetree"},
		{"damaged marker", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "LIVETREE"), "livetree data dirextory, format 1\n")
		}, 65, "damaged"},
		{"without its store", func(t *testing.T, dir string) {
			makeData(t, dir)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
		}, 65, "is missing"},
		{"with a damaged store", func(t *testing.T, dir string) {
			makeData(t, dir)
			manifests, err := filepath.Glob(filepath.Join(dir, "store", "MANIFEST-*"))
			if err != nil || len(manifests) == 0 {
				t.Fatalf("no manifest: %v", err)
			}
			for _, name := range manifests {
				write(t, name, "nonsense")
			}
		}, 65, "MANIFEST"},
		{"with a damaged store, and says what to do", func(t *testing.T, dir string) {
			makeData(t, dir)
			manifests, err := filepath.Glob(filepath.Join(dir, "store", "MANIFEST-*"))
			if err != nil || len(manifests) == 0 {
				t.Fatalf("no manifest: %v", err)
			}
			for _, name := range manifests {
				write(t, name, "nonsense")
			}
		}, 65, "restore a backup into an empty directory with livetree restore"},
		{"with a missing table", func(t *testing.T, dir string) {
			makeData(t, dir)
			tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
			if err != nil || len(tables) == 0 {
				t.Fatalf("no table: %v", err)
			}
			for _, name := range tables {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}, 65, "file does not exist"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			test.prepare(t, dir)
			code, out, errs := command(serving(dir)...)
			if code != test.code || out != "" || !oneLine(errs) || !strings.Contains(errs, test.want) || !strings.Contains(errs, dir) {
				t.Errorf("exit %d, %q, %q; want exit %d and one line with the directory and %q", code, out, errs, test.code, test.want)
			}
		})
	}
}

// makeData makes a data directory with a database in it.
func makeData(t *testing.T, dir string) {
	t.Helper()
	if code, _, errs := command(serving(dir)...); code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
}

// A process is the command in a process of its own.
type process struct {
	*exec.Cmd
	t      *testing.T
	addr   string
	stderr console
	output sync.WaitGroup
}

// start starts a server and waits until it is ready; addr is empty if it ended
// before.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	t.Cleanup(cancel)
	p := &process{t: t, Cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.Env = append(os.Environ(), commandVariable+"=1")
	p.Stderr = &p.stderr
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	p.output.Go(func() {
		defer close(ready)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if _, addr, ok := strings.Cut(lines.Text(), readyText); ok {
				ready <- strings.Fields(addr)[0]
			}
		}
	})
	p.addr = <-ready
	return p
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	p.output.Wait()
	err := p.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func (p *process) stop(signal os.Signal) int {
	p.t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

// request returns the status and the body of an answer.
func (p *process) request(method, path, body string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, "https://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (p *process) expect(method, path, body, want string) {
	p.t.Helper()
	if status, got := p.request(method, path, body); status != http.StatusOK || got != want {
		p.t.Errorf("%s %s: %d %s, want %s", method, path, status, got, want)
	}
}

var replayed = regexp.MustCompile(`replayed (\d+) keys`)

// TestStopAndStart: a server that is asked to stop exits with 0 and leaves
// nothing to replay; one that is killed leaves what it answered.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	flags := serving(dir, "--dev", "--log-level", "debug")
	first := start(t, flags...)
	first.expect("PUT", "/a.json", `"first"`, `"first"`)
	if code := first.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("SIGTERM: exit %d, want 0\n%s", code, first.stderr.String())
	}

	second := start(t, flags...)
	second.expect("GET", "/a.json", "", `"first"`)
	second.expect("PUT", "/b.json", `"second"`, `"second"`)
	if code := second.stop(syscall.SIGKILL); code == 0 {
		t.Errorf("SIGKILL: exit %d", code)
	}
	counts := replayed.FindAllStringSubmatch(second.stderr.String(), -1) // all of it is here now
	if len(counts) == 0 || slices.ContainsFunc(counts, func(m []string) bool { return m[1] != "0" }) {
		t.Errorf("the log of a start after a stop says %q, want that no key was replayed", counts)
	}

	third := start(t, flags...)
	third.expect("GET", "/.json", "", `{"a":"first","b":"second"}`)
	if code := third.stop(os.Interrupt); code != 0 {
		t.Errorf("SIGINT: exit %d, want 0\n%s", code, third.stderr.String())
	}
}

// TestTwoProcesses: the second one on a directory says so in one line, and does
// the first no harm.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, serving(dir, "--dev")...)
	second := start(t, serving(dir, "--dev")...)
	if second.addr != "" {
		t.Errorf("the second process listens on %s", second.addr)
		second.stop(syscall.SIGKILL)
	}
	if code, text := second.wait(), second.stderr.String(); code != 1 || !oneLine(text) ||
		!strings.Contains(text, "in use by another process") || !strings.Contains(text, dir) {
		t.Errorf("the second process: exit %d, %q; want exit 1 and one line that says why", code, text)
	}
	first.expect("PUT", "/a.json", "1", "1")
	if code := first.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("the first process: exit %d\n%s", code, first.stderr.String())
	}
}
