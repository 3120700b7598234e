package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLogRedactsSecrets(t *testing.T) {
	t.Parallel()
	failed := fmt.Errorf("fetch: %w", errors.New(`Get "https://example.com/a.json?print=pretty&auth=swordfish": EOF`))
	for _, asText := range []bool{true, false} {
		var out bytes.Buffer
		logger := newLogger(&out, slog.LevelDebug, asText)
		logger.Info("asked with Authorization: Bearer swordfish",
			"auth", "swordfish", "Authorization", "swordfish", "secret", []byte("swordfish"), "error", failed,
			"url", "/a.json?access_token=swordfish&x=1", slog.Group("request", "token", "swordfish", "header", "bearer  swordfish"))
		logger.With("credential", "swordfish").Debug("again")
		text := out.String()
		if strings.Contains(text, "swordfish") || !strings.Contains(text, "EOF") || !strings.Contains(text, "x=1") || !strings.Contains(text, redacted) {
			t.Errorf("the log is\n%s", text)
		}
		if isJSON := strings.HasPrefix(text, "{"); isJSON == asText {
			t.Errorf("text: %v, the log is\n%s", asText, text)
		}
	}
}

func TestLogLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newLogger(&out, slog.LevelInfo, true).Info("done", "author", "a=b", "n", 5, "error", errors.New("x = y"))
	if text := out.String(); !strings.HasSuffix(text, "msg=done author=\"a=b\" n=5 error=\"x = y\"\n") {
		t.Errorf("the log is %s", text)
	}
}

// A talkative error prints more than its text if it is asked for details.
type talkative struct{}

func (talkative) Error() string { return "no space" }

func (talkative) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "no space\nstack") }

func TestLogHasNoStacksOfErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newLogger(&out, slog.LevelInfo, true).Info("done", "error", talkative{})
	if text := out.String(); !strings.HasSuffix(text, "msg=done error=\"no space\"\n") {
		t.Errorf("the log is %s", text)
	}
}

// TestServeLogs: one line for each request, with its id, and no credential
// anywhere.
func TestServeLogs(t *testing.T) {
	t.Parallel()
	p := start(t, serving(filepath.Join(t.TempDir(), "data"), "--dev", "--access-log", "--log-level", "DEBUG", "--rate-limit", "1/h,4")...)
	p.expect("PUT", "/a.json", `"first"`, `"first"`)
	p.expect("GET", "/a.json", "", `"first"`)
	for _, query := range []string{"?auth=swordfish", "?access_token=swordfish", "?auth=swordfish"} {
		p.request("GET", "/a.json"+query, "")
	}
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	log := p.stderr.String()
	if strings.Contains(log, "swordfish") {
		t.Errorf("the log shows the credential:\n%s", log)
	}
	var statuses []int
	lines := json.NewDecoder(strings.NewReader(log))
	for {
		var line struct {
			Msg, Request, Method, Path, Database string
			Status                               int
		}
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, log)
		}
		if line.Msg != "request" {
			continue
		}
		if line.Request == "" || line.Path != "/a.json" || line.Method == "" || line.Database != "default" && line.Status != http.StatusTooManyRequests {
			t.Errorf("the log has %+v", line)
		}
		statuses = append(statuses, line.Status)
	}
	if got, want := fmt.Sprint(statuses), "[200 200 401 401 429]"; got != want {
		t.Errorf("the statuses in the log are %s, want %s", got, want)
	}
}
