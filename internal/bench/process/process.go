// Package process has the processes of a run of the benchmark: it starts and stops them, reads what they say, and asks the
// system, or their runtime, what they take. On Linux one can be held to an amount of memory.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTime is what a process gets to say that it is ready, stopTime to end when
// it is asked to.
const (
	startTime = 5 * time.Minute // a server may have a long log to replay
	stopTime  = time.Minute
)

// ErrNotLinux says that the system does not tell what another process takes.
var ErrNotLinux = errors.New("only Linux tells what another process takes")

// A Process is another one that we started, or, without a cmd, only know.
type Process struct {
	cmd   *exec.Cmd
	PID   int
	In    io.WriteCloser
	Lines *bufio.Reader
	ended chan struct{} // closed when it has ended; nil without a cmd
	Said  *Tail

	// Control is where its runtime can be asked, with a credential.
	Control, Credential string
}

// Start starts a program with these arguments. It ends with ctx. Our
// settings are not its own, so it gets none of their environment variables.
func Start(ctx context.Context, executable string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, executable, args...), ended: make(chan struct{}), Said: &Tail{}}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "LIVETREE_") {
			p.cmd.Env = append(p.cmd.Env, setting)
		}
	}
	p.cmd.Stderr = p.Said
	detach(p.cmd)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.In, p.Lines, p.PID = in, bufio.NewReader(out), p.cmd.Process.Pid
	return p, nil
}

// Await reads lines until one contains a text, and returns what follows it up to
// a space. Nothing else reads the lines then.
func (p *Process) Await(text string) (string, error) {
	late := time.AfterFunc(startTime, p.Kill)
	defer late.Stop()
	for {
		line, err := p.Lines.ReadString('\n')
		if err != nil {
			p.Wait()
			return "", fmt.Errorf("%s does not start: %w %s", p.cmd.Args[min(2, len(p.cmd.Args)-1)], err, p.Said)
		}
		if _, rest, ok := strings.Cut(line, text); ok {
			return strings.Fields(rest)[0], nil
		}
	}
}

// Serve goes on to read what the process prints, until it has ended.
func (p *Process) Serve() { go p.Wait() }

// Wait reads the rest and waits until the process has ended.
func (p *Process) Wait() {
	_, _ = io.Copy(io.Discard, p.Lines)
	_ = p.cmd.Wait() // it was killed, or says on standard error what happened
	close(p.ended)
}

// Kill ends the process at once.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Close ends the process. What it leaves is thrown away, so it need not tidy up.
func (p *Process) Close() {
	if p == nil || p.cmd == nil {
		return
	}
	p.Kill()
	<-p.ended
}

// Stop asks the process to end, and waits until it has.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
		p.Close()
		return errors.New("the server does not stop")
	}
}

// A Tail keeps the end of what is written to it.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const kept = 2000
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// Memory is what a Go runtime says of its memory.
type Memory struct {
	Mallocs, AllocBytes uint64
	InUse               int64 // heap and stacks
}

// Memory asks the runtime of the process, after a collection if that matters. A
// process that cannot be asked says nothing.
func (p *Process) Memory(ctx context.Context, collect bool) (Memory, error) {
	if p == nil || p.Control == "" {
		return Memory{}, nil
	}
	target := p.Control + "/debug/pprof/heap?debug=1"
	if collect {
		target += "&gc=1"
	}
	text, err := p.Ask(ctx, http.MethodGet, target, nil)
	if err != nil {
		return Memory{}, err
	}
	stats := memStats(text)
	return Memory{
		Mallocs: stats["Mallocs"], AllocBytes: stats["TotalAlloc"],
		InUse: int64(stats["HeapInuse"] + stats["Stack"]),
	}, nil
}

// memStats reads the lines of a heap profile that hold runtime.MemStats: they are
// like "# Mallocs = 12" and, for what is in use and what there is of the system,
// "# Stack = 12 / 34".
func memStats(text []byte) map[string]uint64 {
	stats := make(map[string]uint64)
	for line := range bytes.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(string(line), "# "), " = ")
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			stats[name] = n
		}
	}
	return stats
}

// Ask makes a request to the control listener.
func (p *Process) Ask(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if p.Credential != "" {
		r.Header.Set("Authorization", "Bearer "+p.Credential)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, bytes.TrimSpace(text))
	}
	return text, err
}
