package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

// childVariable tells a process that it is a server: with this data directory
// and, behind a line feed, the file that lets its disk fail.
const childVariable = "LIVETREE_TEST_SERVER"

// TestMain turns the test binary into a server that may end.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		owneronly.Umask()
		data, faultFile, _ := strings.Cut(text, "\n")
		os.Exit(runChild(data, faultFile))
	}
	owneronly.Umask() // as the command does
	proof.SideBySide(8)
	os.Exit(m.Run())
}

// runChild returns the exit code, as the command has it.
func runChild(data, faultFile string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c := Config{
		Data: data, Addr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0", DefaultDatabase: "default", Dev: true,
		Limits: Limits{DrainAccept: time.Millisecond, DrainRequests: patience}, Logger: logger, Out: os.Stdout,
	}
	if faultFile != "" {
		c.Disturb = func(o *store.Options) { o.FS = newFaultyDisk(failFrom(faultFile)) }
	}
	err := Run(ctx, c)
	if err != nil {
		logger.Error("the server ended", "error", err)
	}
	return store.ExitCode(err)
}

// A childServer is a server in a process of its own.
type childServer struct {
	*exec.Cmd
	t         *testing.T
	faultFile string
	public    string
	stderr    lockedBuffer
	client    *http.Client
	output    sync.WaitGroup
}

func startChild(t *testing.T, data, faultFile string) *childServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	t.Cleanup(cancel)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	p := &childServer{t: t, faultFile: faultFile, Cmd: exec.CommandContext(ctx, os.Args[0]), client: &http.Client{Transport: transport}}
	p.Env = append(os.Environ(), childVariable+"="+data+"\n"+faultFile)
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
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				ready <- url
			}
		}
	})
	if p.public = <-ready; p.public == "" {
		t.Fatalf("the server ended with %d:\n%s", p.wait(), &p.stderr)
	}
	return p
}

// wait returns the exit code.
func (p *childServer) wait() int {
	p.t.Helper()
	p.output.Wait()
	err := p.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func (p *childServer) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// put returns the status of an answer, 0 if there is none.
func (p *childServer) put(path, body string) int {
	r, err := http.NewRequest(http.MethodPut, p.public+path, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return 0
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// get returns the body of an answer, or the error.
func (p *childServer) get(path string) string {
	answer, err := p.client.Get(p.public + path)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// dialTLS opens a connection to the port of the data.
func dialTLS(m *managed) *tls.Conn {
	m.t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(m.public, "https://"), &tls.Config{RootCAs: m.authority(), ServerName: "localhost"})
	if err != nil {
		m.t.Fatal(err)
	}
	return conn
}
