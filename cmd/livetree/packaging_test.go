package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/supervisor"
)

// packaged returns a file of packaging/.
func packaged(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../packaging/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parses checks that the command would take an argument line.
func parses(t *testing.T, args []string) {
	t.Helper()
	c, rest, err := newRootCommand(newApp()).Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.Args != nil {
		err = c.Args(c, c.Flags().Args())
	}
	if err != nil {
		t.Errorf("livetree %q: %v", args, err)
	}
}

// settingName is a variable that stands for a flag of serve.
var settingName = regexp.MustCompile(`\bLIVETREE_[A-Z_]+\b`)

// hasSettings checks that every variable in a text is one of serve.
func hasSettings(t *testing.T, text string) {
	t.Helper()
	found := settingName.FindAllString(text, -1)
	if len(found) == 0 {
		t.Error("there is no variable in it")
	}
	for _, name := range found {
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "LIVETREE_")), "_", "-")
		if f := serveFlags(t).Lookup(flag); f == nil || cli.Variable(flag) != name {
			t.Errorf("%s is the variable of no flag of serve", name)
		}
	}
}

func TestUnitIsForThisCommand(t *testing.T) {
	t.Parallel()
	unit := packaged(t, "livetree.service")
	hasSettings(t, unit)
	start := regexp.MustCompile(`(?m)^ExecStart=/\S+/livetree (.+)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("the unit starts something else")
	}
	parses(t, strings.Fields(start[1]))
	if !strings.Contains(unit, "\nRestartPreventExitStatus=65\n") {
		t.Error("the unit starts a server on damaged data again and again")
	}
	if !strings.Contains(unit, "\nType=notify\nTimeoutStartSec=infinity\n") {
		t.Error("the unit does not wait until the server is ready, or ends one that takes its time")
	}
}

// TestSocketIsForThisCommand: the name of a socket is that of the flag whose port it is.
func TestSocketIsForThisCommand(t *testing.T) {
	t.Parallel()
	unit := packaged(t, "livetree.socket")
	name := regexp.MustCompile(`(?m)^FileDescriptorName=(.+)$`).FindStringSubmatch(unit)
	if name == nil || name[1] != supervisor.Addr || serveFlags(t).Lookup(name[1]) == nil {
		t.Errorf("the socket is called %q, want %s", name, supervisor.Addr)
	}
	if flag := serveFlags(t).Lookup(supervisor.Addr); !strings.Contains(unit, "\nListenStream="+flag.DefValue+"\n") {
		t.Errorf("the socket is not on %s, where the server is without it", flag.DefValue)
	}
	if serveFlags(t).Lookup(supervisor.HTTPAddr) == nil {
		t.Errorf("there is no flag %s", supervisor.HTTPAddr)
	}
}

func TestImageIsForThisCommand(t *testing.T) {
	t.Parallel()
	file := packaged(t, "Dockerfile")
	hasSettings(t, file)
	lines := regexp.MustCompile(`(?m)^(?:HEALTHCHECK .*CMD|CMD) (\[.+\])$`).FindAllStringSubmatch(file, -1)
	if len(lines) != 2 {
		t.Fatalf("the image has %d commands, want the server and its health check", len(lines))
	}
	for _, line := range lines {
		var args []string
		if err := json.Unmarshal([]byte(line[1]), &args); err != nil {
			t.Fatal(err)
		}
		if args[0] == "/livetree" {
			args = args[1:]
		}
		parses(t, args)
	}
	version := regexp.MustCompile(`FROM golang:(\S+) `).FindStringSubmatch(file)
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if version == nil || !strings.Contains(string(module), "\ngo "+version[1]) {
		t.Errorf("the image is built with Go %q, which is not that of go.mod", version)
	}
}
