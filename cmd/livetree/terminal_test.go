package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A screen is one of tmux, where a command runs as a person sees it.
type screen struct {
	t      *testing.T
	tmux   string
	socket string // its own: a tmux that is ending refuses a new session
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed: NOTHING is tested on a terminal")
	}
	s := &screen{t: t, tmux: tmux, socket: filepath.Join(t.TempDir(), "tmux")}
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", s.socket, "kill-server").Run() })
	return s
}

func (s *screen) do(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(s.tmux, append([]string{"-S", s.socket, "-f", os.DevNull}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// run runs livetree on a new screen, which then says how it ended.
func (s *screen) run(args ...string) {
	s.t.Helper()
	shell := fmt.Sprintf("%s=1 %q", commandVariable, os.Args[0])
	for _, arg := range args {
		shell += fmt.Sprintf(" %q", arg)
	}
	s.do("new-session", "-d", "-x", "100", "-y", "30", shell+"; echo ended with $?; exec cat")
}

func (s *screen) press(key string) { s.do("send-keys", key) }

// shows waits until the screen shows a text, and returns all that is on it.
func (s *screen) shows(want string) string {
	s.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		text := s.do("capture-pane", "-p")
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("the screen does not show %q:\n%s", want, text)
		}
	}
}

// TestDocsFitATerminal: pages of the manual are as wide as the terminal, if that is narrow.
func TestDocsFitATerminal(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	const width = 60
	s.do("new-session", "-d", "-x", fmt.Sprint(width), "-y", "250", fmt.Sprintf("PAGER= %s=1 %q docs queries; echo ended; exec cat", commandVariable, os.Args[0]))
	s.shows("ended")
	for line := range strings.Lines(s.do("capture-pane", "-p", "-J")) { // with lines that the terminal has broken as one
		if strings.HasPrefix(line, "A query reads") && len(strings.TrimSpace(line)) > width {
			t.Errorf("a line is longer than %d: %s", width, line)
		}
	}
}

// TestImportOnATerminal: there is a progress bar; an import that is interrupted by
// the keyboard says how to go on, and does.
func TestImportOnATerminal(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	defer p.end()
	terminal := newScreen(t)
	const children = 20_000
	file := filepath.Join(t.TempDir(), "people.json")
	var text bytes.Buffer
	for i := range children {
		fmt.Fprintf(&text, `,"k%06d":{"n":%d,"text":%q}`, i, i, strings.Repeat("x", 200))
	}
	text.WriteByte('}')
	text.Bytes()[0] = '{'
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	front := newRelay(t, p.addr)
	front.slowDown(1 << 20) // it must not be done before it is interrupted
	url, ca := "https://"+front.Addr().String(), filepath.Join(data, "tls", "ca.pem")
	args := []string{"import", file, "/people", "--url", url, "--ca", ca, "--parallel", "1", "--request-size", "4KiB"}
	terminal.run(args...)
	terminal.shows("importing  [#")
	terminal.press("C-c")
	if said := terminal.shows("ended with 75"); !strings.Contains(said, "same command") {
		t.Errorf("an import that was interrupted says\n%s", said)
	}
	close(front.fast)
	terminal = newScreen(t)
	terminal.run(args...)
	terminal.shows("ended with 0")
	code, out, errs := command("get", "/people", "--shallow", "--json", "--url", url, "--ca", ca)
	var keys map[string]bool
	if err := json.Unmarshal([]byte(out), &keys); code != 0 || err != nil || len(keys) != children {
		t.Errorf("after that there are %d children, exit %d, %v %s", len(keys), code, err, errs)
	}
}

// TestServeOnATerminal: a person reads where the server is and what to do, and nothing before that.
func TestServeOnATerminal(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "d")
	terminal := newScreen(t)
	terminal.run(serving(data)...)
	text := terminal.shows("^C stops the server.")
	if !strings.HasPrefix(text, "livetree: listening on https://") {
		t.Errorf("the first thing that a person reads is not where the server is:\n%s", text)
	}
	for _, want := range []string{"  data: ", "closed to all but the holder of its secret", "livetree set /hello '\"world\"' --data"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "level=INFO") {
		t.Errorf("there are lines of the log:\n%s", text)
	}
	if code, _, errs := command("set", "/hello", `"world"`, "--data", data); code != 0 {
		t.Errorf("what it says to try: exit %d, %s", code, errs)
	}
	terminal.press("C-c")
	if text := terminal.shows("ended with 0"); !strings.Contains(text, "stopping when running requests are answered") {
		t.Errorf("it does not say that it stops:\n%s", text)
	}
}

// TestLoginOnATerminal: the secret is not shown, and an interrupt leaves the terminal as it was.
func TestLoginOnATerminal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	s, err := startInProcess(filepath.Join(dir, "livetree-data"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	args := []string{"login", s.url, "--name", "here", "--ca", filepath.Join(dir, "livetree-data", "tls", "ca.pem")}
	terminal := newScreen(t)
	terminal.run(args...)
	terminal.shows("Secret of " + s.url + ":")
	terminal.press(scriptSecret)
	terminal.press("Enter")
	if text := terminal.shows("ended with 0"); !strings.Contains(text, "as here, which is the default server now") || strings.Contains(text, scriptSecret) {
		t.Errorf("the screen shows\n%s", text)
	}
	if code, out, errs := command("login", "--list"); code != 0 || out != "* here  "+s.url+"\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	terminal = newScreen(t)
	terminal.run(args...)
	terminal.shows("Secret of")
	terminal.press("C-c")
	terminal.shows("ended with 75")
	terminal.press("shown")
	terminal.shows("shown")
}
