package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/demo"
)

// runDemo runs livetree demo until it says what to try, does something then, and stops it.
func runDemo(t *testing.T, then func(out string), args ...string) (code int, out, errs string) {
	t.Helper()
	signals := make(chan os.Signal, 2)
	ready := make(chan os.Signal, 1)
	stdout, stderr := &console{ready: ready, at: "^C ends the demo"}, &console{}
	a := newApp()
	a.stdin, a.stdout, a.stderr = strings.NewReader(""), stdout, stderr
	ended := make(chan int, 1)
	go func() { ended <- run(signals, a, append([]string{"demo"}, args...)) }()
	select {
	case <-ready:
		then(stdout.String())
		signals <- os.Interrupt
		code = <-ended
	case code = <-ended:
	}
	return code, stdout.String(), stderr.String()
}

var demoLine = regexp.MustCompile(`(?m)^  (?:streams|queries|rules) +livetree (.*) --data (\S+)$`)

// TestDemo: the lines that the demo says to try can be tried, and it leaves nothing.
func TestDemo(t *testing.T) {
	t.Setenv("LIVETREE_DATA", filepath.Join(t.TempDir(), "real")) // not what the demo writes to
	t.Setenv("LIVETREE_ADDR", "0.0.0.0:9000")
	data := ""
	code, out, errs := runDemo(t, func(out string) {
		lines := demoLine.FindAllStringSubmatch(out, -1)
		if len(lines) != 3 {
			t.Fatalf("the demo says\n%s", out)
		}
		data = lines[0][2]
		for i, want := range []string{`put / {`, `"text":`, "denied"} {
			args := strings.Fields(strings.NewReplacer(`'{"uid": "eve"}'`, `{"uid":"eve"}`).Replace(lines[i][1]))
			if i == 0 {
				args = append(args, "--count", "2") // what is there, and a message that is written meanwhile
			}
			if _, out, errs := command(append(args, "--data", data)...); !strings.Contains(out, want) {
				t.Errorf("livetree %q prints %q, %q, want %q", args, out, errs, want)
			}
		}
	})
	if code != 0 || errs != "" || !strings.Contains(out, readyText) || !strings.Contains(out, "deletes its data") {
		t.Errorf("the demo ends with %d, %q, %q", code, out, errs)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the demo leaves %s: %v", data, err)
	}
}

// TestDemoOnADirectory: what it was given stays, and is used again, if it is a demo.
func TestDemoOnADirectory(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "chat")
	count := func(string) {
		code, out, errs := command("get", "/directory", "--shallow", "--json", "--data", data)
		if n := strings.Count(out, ":true"); code != 0 || n != 200 {
			t.Errorf("the directory has %d people, exit %d, %s", n, code, errs)
		}
	}
	for range 2 {
		if code, out, errs := runDemo(t, count, "--data", data); code != 0 || errs != "" || !strings.Contains(out, "the data stays") {
			t.Errorf("exit %d, %q, %q", code, out, errs)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	s, err := startInProcess(other)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := command("set", "/mine", "1", "--data", other, "--auth", scriptSecret); code != 0 {
		t.Fatal(errs)
	}
	s.stop()
	if err := os.MkdirAll(filepath.Join(other, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "secrets", "default"), []byte(scriptSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runDemo(t, func(string) { t.Error("other data was taken for a demo") }, "--data", other); code != 1 || !oneLine(errs) || !strings.Contains(errs, "holds other data") {
		t.Errorf("on other data: exit %d, %q", code, errs)
	}
	if code, _, errs := command("demo", "--addr", "0.0.0.0:0"); code != 1 || !strings.Contains(errs, "for this machine only") {
		t.Errorf("on all addresses: exit %d, %q", code, errs)
	}
}

// TestDemoHasTheRulesOfTheManual: see docs/rules.md.
func TestDemoHasTheRulesOfTheManual(t *testing.T) {
	t.Parallel()
	if text, err := os.ReadFile(roomsJSON); err != nil || string(text) != demo.Rules {
		t.Errorf("the rules of the demo are not those of %s: %v", roomsJSON, err)
	}
}
