package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/livetree/livetree/internal/server"
)

const scriptSecret = "sCrIpTsCrIpTsCrIpTsCrIpT"

// TestClientScripts runs testdata/client. Each script has a server of its own in
// this process, at $LIVETREE_URL with $LIVETREE_AUTH, whose authority is found in
// livetree-data. Beside the commands of TestScripts there are
//
//	server NAME     starts another server: $NAME is its URL, $NAME_CA its authority
//	server NAME DIR likewise, with an archive in a directory
//	stop            stops the first server; stop NAME another
//	moment NAME     has $NAME be the time, which is after all that was done and before all that is
//	spoil DIR       changes a byte of the newest segment of an archive
//	damage FILE     cuts the last third off a file
func TestClientScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/client",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s, err := startInProcess(filepath.Join(env.WorkDir, "livetree-data"))
			if err != nil {
				return err
			}
			env.Defer(s.stop)
			env.Values[serversKey{}] = map[string]*inProcess{"": s}
			env.Setenv("LIVETREE_URL", s.url)
			env.Setenv("LIVETREE_AUTH", scriptSecret)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":  fails,
			"server": anotherServer,
			"moment": moment,
			"spoil":  spoil,
			"stop": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Value(serversKey{}).(map[string]*inProcess)[strings.Join(args, "")].stop()
			},
			"damage": func(ts *testscript.TestScript, _ bool, args []string) {
				text := ts.ReadFile(args[0])
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text[:len(text)*2/3]), 0o600))
			},
		},
	})
}

// A serversKey is for the servers of a script by name, that of the first is empty.
type serversKey struct{}

// An inProcess is a server in the process of the test.
type inProcess struct {
	url  string
	stop func()
}

// readyAt waits for the line that says where a server is.
type readyAt chan string

func (r readyAt) Write(p []byte) (int, error) {
	if _, rest, ok := strings.Cut(string(p), readyText); ok {
		r <- "https://" + strings.Fields(rest)[0]
	}
	return len(p), nil
}

// startInProcess starts a server on a directory, with settings that differ.
func startInProcess(dir string, settings ...func(*server.Config)) (*inProcess, error) {
	ready, abort, ended := make(readyAt, 1), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		config := server.Config{
			Data: dir, Addr: ownHost() + ":0", DefaultDatabase: "default", Secret: scriptSecret,
			Logger: slog.New(slog.DiscardHandler), Out: ready, Abort: abort,
		}
		for _, set := range settings {
			set(&config)
		}
		ended <- server.Run(ctx, config)
	}()
	s := &inProcess{}
	select {
	case s.url = <-ready:
	case err := <-ended:
		cancel()
		return nil, errors.Join(errors.New("the server does not start"), err)
	}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		close(abort) // nobody is left to be waited for
		<-ended
	}
	return s, nil
}

func anotherServer(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs("data-" + args[0])
	s, err := startInProcess(dir, func(c *server.Config) {
		if len(args) > 1 {
			c.AdminAddr = ownHost() + ":0"
			c.Archive = server.Archive{URL: "file://" + ts.MkAbs(args[1]), Keep: time.Hour, Spool: 1 << 30}
		}
	})
	ts.Check(err)
	ts.Defer(s.stop)
	ts.Value(serversKey{}).(map[string]*inProcess)[args[0]] = s
	ts.Setenv(args[0], s.url)
	ts.Setenv(args[0]+"_CA", filepath.Join(dir, "tls", "ca.pem"))
}

// moment tells the time between what was done and what is done next.
func moment(ts *testscript.TestScript, _ bool, args []string) {
	const apart = 20 * time.Millisecond
	time.Sleep(apart) //nolint:forbidigo // commits have the time of the machine
	ts.Setenv(args[0], time.Now().UTC().Format(time.RFC3339Nano))
	time.Sleep(apart) //nolint:forbidigo // likewise
}

// spoil changes a byte in the middle of the newest segment of an archive.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	segments, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "lines", "*", "segments", "*"))
	ts.Check(err)
	file := segments[len(segments)-1]
	content, err := os.ReadFile(file)
	ts.Check(err)
	content[len(content)/2] ^= 1
	ts.Check(os.WriteFile(file, content, 0o600))
}

// atTerminal runs a command as if a person sat there, who types an answer.
func atTerminal(typed string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := newApp()
	a.stdin, a.stdout, a.stderr = io.NopCloser(strings.NewReader(typed)), &out, &errs
	a.isTerminal = func(any) bool { return true }
	code = run(make(chan os.Signal, 2), a, args)
	return code, out.String(), errs.String()
}

// TestAtATerminal: it asks before it deletes, and prints for people.
func TestAtATerminal(t *testing.T) {
	dir := t.TempDir()
	s, err := startInProcess(filepath.Join(dir, "livetree-data"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	t.Chdir(dir)
	t.Setenv("LIVETREE_URL", s.url)
	t.Setenv("LIVETREE_AUTH", scriptSecret)
	write(t, "small.json", `{"b":2}`)
	tests := []struct {
		typed    string
		args     []string
		code     int
		out, err string
	}{
		{"", []string{"set", "/a", `{"x":[1,2]}`}, 0, "set /a\n", ""},
		{"", []string{"set", "/a"}, 1, "", "there is no data"},
		{"", []string{"get", "/a"}, 0, "{\n  \"x\" : [ 1, 2 ]\n}\n", ""},
		{"", []string{"get", "/a", "--json"}, 0, "{\"x\":[1,2]}\n", ""},
		{"n\n", []string{"remove", "/a"}, 1, "", "Delete /a of " + s.url + " with all that is below it? [y/N] livetree: nothing was changed"},
		{"", []string{"remove", "/a"}, 1, "", "nothing was changed"},
		{"no\n", []string{"import", "small.json", "/a", "--replace"}, 1, "", "nothing was changed"},
		{"", []string{"get", "/a", "--json"}, 0, "{\"x\":[1,2]}\n", ""},
		{"y\n", []string{"import", "small.json", "/a", "--replace"}, 0, "imported 1 leaf to /a: 7 B in 1 request\n", "importing"},
		{"", []string{"get", "/a", "--json"}, 0, "{\"b\":2}\n", ""},
		{"", []string{"remove", "/a", "--yes"}, 0, "removed /a\n", ""},
		{"", []string{"get", "/a"}, 0, "null\n", ""},
	}
	for _, test := range tests {
		code, out, errs := atTerminal(test.typed, test.args...)
		if code != test.code || out != test.out || !strings.Contains(errs, test.err) {
			t.Errorf("livetree %q: exit %d, %q, %q; want exit %d, %q, %q", test.args, code, out, errs, test.code, test.out, test.err)
		}
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		done, total int64
		seconds     int64
		want        string
	}{
		{50_000_000, 100_000_000, 5, "importing  [##########..........]  50%  50.0 MB of 100.0 MB  10.0 MB/s  5s left"},
		{0, 100, 0, "importing  [....................]   0%  0 B of 100 B  0 B/s"},
		{20_000, -1, 2, "importing  20.0 kB  10.0 kB/s"},
	} {
		if got := progressLine("importing", test.done, test.total, time.Duration(test.seconds)*time.Second); got != test.want {
			t.Errorf("%d of %d bytes after %d s: %q, want %q", test.done, test.total, test.seconds, got, test.want)
		}
	}
}

// TestWatch follows changes across a restart of the server.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "livetree-data")
	s, err := startInProcess(data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.stop() }()
	front := newRelay(t, strings.TrimPrefix(s.url, "https://"))
	t.Chdir(dir)
	t.Setenv("LIVETREE_URL", "https://"+front.Addr().String())
	t.Setenv("LIVETREE_AUTH", scriptSecret)
	set := func(path, text string) {
		t.Helper()
		if code, _, errs := command("set", path, text); code != 0 {
			t.Fatalf("set %s: exit %d, %s", path, code, errs)
		}
	}
	set("/a", `{"x":1}`)

	lines, signals, done := make(lineChannel, 100), make(chan os.Signal, 2), make(chan int, 1)
	a := newApp()
	a.stdout, a.stderr = lines, io.Discard
	go func() { done <- run(signals, a, []string{"watch", "/a"}) }()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-lines:
			if got != want {
				t.Errorf("watch prints %q, want %q", got, want)
			}
		case code := <-done:
			t.Fatalf("watch ends with %d before it prints %q", code, want)
		case <-time.After(patience):
			t.Fatalf("watch does not print %q", want)
		}
	}
	expect("put / {\"x\":1}\n")
	set("/a/y", "2")
	expect("put /y 2\n")
	if code, _, errs := command("update", "/a", `{"x":null,"z":[3]}`); code != 0 {
		t.Fatalf("update: exit %d, %s", code, errs)
	}
	expect("patch / {\"x\":null,\"z\":[3]}\n")

	s.stop()
	if s, err = startInProcess(data); err != nil {
		t.Fatal(err)
	}
	front.lead(strings.TrimPrefix(s.url, "https://"))
	set("/a/w", "4") // what is missed, if the watch is not back yet, is told then
	expect("put /w 4\n")
	signals <- os.Interrupt
	if code := <-done; code != 0 {
		t.Errorf("a watch that is interrupted: exit %d, want 0", code)
	}
}

// lineChannel passes on what is written to it.
type lineChannel chan string

func (c lineChannel) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}
