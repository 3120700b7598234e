//go:build linux

package manual_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
)

// patience is how long a step may take, on a machine that does much else.
const patience = 60 * time.Second

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the commands of the manual are not run: there is no %s", name)
		}
	}
}

// prelude defines what hidden commands use. An alias in front of exec lets it run aliases.
const prelude = `shopt -s expand_aliases
alias exec='exec '
start() {
	started=$((started + 1))
	livetree serve "$@" >"$HOME/start-$started" 2>&1 </dev/null &
	for try in $(seq 600); do
		grep -q 'listening on' "$HOME/start-$started" && return 0
		sleep 0.05
	done
	cat "$HOME/start-$started"
	return 1
}
stop() {
	kill $(jobs -p) 2>/dev/null
	wait
}
`

// ends is what a step prints last.
var ends = regexp.MustCompile(`(?s)^(.*)\n@@ ended (\d+)\n$`)

// A shell is a bash in a directory of its own. Addresses and directories that pages name are
// replaced by others, so that all pages can be run at a time, without rights, beside whatever
// else the machine does.
type shell struct {
	t     *testing.T
	dir   string // where commands run
	home  string
	in    io.Writer
	out   *bufio.Reader
	ports map[string]string
	count int
	end   func() // ends bash and all that it has started
}

func newShell(t *testing.T, binaries string) *shell {
	root := t.TempDir()
	s := &shell{t: t, dir: filepath.Join(root, "work"), home: filepath.Join(root, "home"), ports: map[string]string{}}
	for _, dir := range []string{s.dir, s.home, s.elsewhere("/var/lib"), s.elsewhere("/mnt/other"), s.elsewhere("/backups"), s.elsewhere("/etc")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Its progress is for people.
	if err := os.WriteFile(filepath.Join(s.home, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("bash", "--noprofile", "--norc")
	c.Dir = s.dir
	c.Env = []string{
		"PATH=" + binaries + ":" + os.Getenv("PATH"), "HOME=" + s.home, "LANG=C.UTF-8", "TZ=UTC", "TMPDIR=" + root,
		"LIVETREE_ADDR=127.0.0.1:" + s.port("9000"), "LIVETREE_ADMIN_ADDR=127.0.0.1:" + s.port("9001"),
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all it starts can be ended
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	s.end = func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		s.end()
		_ = c.Wait()
	})
	if text, code := s.do(prelude); code != 0 {
		t.Fatalf("the prelude failed: %s", text)
	}
	return s
}

// elsewhere returns the directory in place of one that a page names.
func (s *shell) elsewhere(dir string) string { return filepath.Join(s.home, "root") + dir }

var (
	namedPort = regexp.MustCompile(`([: ]|localhost:)(9[0-9]{3})\b`)
	namedDir  = regexp.MustCompile(`(^|[\s"'=(@]|file://)(/(?:var/lib|mnt/other|backups|etc|tmp)\b)`)
)

// port returns a free port of this machine in place of one that a page names.
func (s *shell) port(named string) string {
	if s.ports[named] == "" {
		_, s.ports[named], _ = net.SplitHostPort(freeaddr.One(s.t))
	}
	return s.ports[named]
}

// real replaces what a page names by what there is, shown does the opposite.
func (s *shell) real(text string) string {
	text = namedPort.ReplaceAllStringFunc(text, func(found string) string {
		at := len(found) - 4
		return found[:at] + s.port(found[at:])
	})
	return namedDir.ReplaceAllString(text, "${1}"+s.elsewhere("")+"$2")
}

func (s *shell) shown(text string) string {
	for named, port := range s.ports {
		text = strings.ReplaceAll(text, ":"+port, ":"+named)
	}
	return strings.ReplaceAll(text, s.elsewhere(""), "")
}

// do has a text run and returns what it prints and the exit code.
func (s *shell) do(text string) (string, int) {
	s.count++
	file := filepath.Join(s.home, fmt.Sprintf("step-%d.sh", s.count))
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, ". %s </dev/null 2>&1; code=$?; trap - ERR; printf '\\n@@ ended %%d\\n' $code\n", file); err != nil {
		s.t.Fatal(err)
	}
	late := time.AfterFunc(patience, s.end)
	defer late.Stop()
	var all strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		all.WriteString(line)
		if m := ends.FindStringSubmatch(all.String()); m != nil {
			code := 0
			_, _ = fmt.Sscan(m[2], &code)
			return s.shown(m[1]), code
		}
		if err != nil {
			s.t.Fatalf("bash has ended, or what it runs takes more than %s: %v\n%s\n%s", patience, err, text, all.String())
		}
	}
}

// run runs the steps of a page.
func (s *shell) run(steps []step) {
	var going []func()
	for _, st := range steps {
		switch {
		case st.file != "":
			s.write(st)
		case st.together:
			s.beginAll(st)
		case st.background:
			going = append(going, s.begin(st))
		default:
			s.one(st)
		}
		if s.t.Failed() {
			return
		}
	}
	for _, compare := range going {
		compare()
	}
}

func (s *shell) write(st step) {
	file := filepath.Join(s.dir, st.file)
	if strings.HasPrefix(st.file, "/") {
		file = s.elsewhere(st.file)
	}
	if err := os.WriteFile(file, []byte(s.real(st.command)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) one(st step) {
	text := s.real(st.command)
	if !st.compared && st.exit == 0 {
		text = "trap 'return $?' ERR\n" + text // the first command that fails ends the block
	}
	out, code := s.do(text)
	s.t.Logf("line %d: %s\n%s", st.line, st.command, out)
	if code != st.exit {
		s.t.Errorf("line %d: exit %d, want %d:\n%s\n%s", st.line, code, st.exit, st.command, out)
	}
	if st.compared && !matches(st.output, out) {
		s.t.Errorf("line %d: %s\nprinted\n%s\nbut the page shows\n%s", st.line, st.command, out, st.output)
	}
}

const listening = "listening on https://"

// begin starts what goes on, waits until it has printed its first line, and returns what
// compares all it has printed.
func (s *shell) begin(st step) func() {
	out := s.inBackground(st, st.command)
	first := listening
	if st.compared {
		first, _, _ = strings.Cut(strings.TrimSpace(st.output), "\n")
		first, _, _ = strings.Cut(first, "…")
	}
	s.await(st, out, func(text string) bool { return strings.Contains(text, first) })
	return func() {
		if st.compared {
			s.await(st, out, func(text string) bool { return matches(st.output, text) })
		}
	}
}

// beginAll starts servers that wait for each other.
func (s *shell) beginAll(st step) {
	var outs []string
	for line := range strings.SplitSeq(st.command, "\n") {
		outs = append(outs, s.inBackground(st, line))
	}
	for _, out := range outs {
		s.await(st, out, func(text string) bool { return strings.Contains(text, listening) })
	}
}

// inBackground starts a command, and returns the file that it prints to.
func (s *shell) inBackground(st step, command string) string {
	out := filepath.Join(s.home, fmt.Sprintf("background-%d", s.count))
	// exec, so that a signal to the job reaches the command.
	if text, code := s.do("( exec " + s.real(command) + " ) >" + out + " 2>&1 &"); code != 0 {
		s.t.Fatalf("line %d: exit %d: %s", st.line, code, text)
	}
	return out
}

// await waits until a file holds what is wanted.
func (s *shell) await(st step, file string, wanted func(text string) bool) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(patience / 2)
	var text string
	for {
		select {
		case <-late:
			s.t.Fatalf("line %d: %s\nprinted\n%s\nbut the page shows\n%s", st.line, st.command, text, st.output)
		case <-look.C:
		}
		all, err := os.ReadFile(file)
		if text = s.shown(string(all)); err == nil && wanted(text) {
			return
		}
	}
}
