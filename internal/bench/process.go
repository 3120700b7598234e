package bench

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

// errNotLinux says that the system does not tell what another process takes.
var errNotLinux = errors.New("only Linux tells what another process takes")

// A process is another one that we started, or, without a cmd, only know.
type process struct {
	cmd   *exec.Cmd
	pid   int
	in    io.WriteCloser
	lines *bufio.Reader
	ended chan struct{} // closed when it has ended; nil without a cmd
	said  *tail

	// control is where its runtime can be asked, with a credential.
	control, credential string
}

// start starts a process that runs Peer with these arguments. It ends with ctx. Our
// settings are not its own, so it gets none of their environment variables.
func start(ctx context.Context, executable string, args ...string) (*process, error) {
	args = append([]string{PeerArgument}, args...)
	p := &process{cmd: exec.CommandContext(ctx, executable, args...), ended: make(chan struct{}), said: &tail{}}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "LIVETREE_") {
			p.cmd.Env = append(p.cmd.Env, setting)
		}
	}
	p.cmd.Stderr = p.said
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
	p.in, p.lines, p.pid = in, bufio.NewReader(out), p.cmd.Process.Pid
	return p, nil
}

// await reads lines until one contains a text, and returns what follows it up to
// a space. Nothing else reads the lines then.
func (p *process) await(text string) (string, error) {
	late := time.AfterFunc(startTime, p.kill)
	defer late.Stop()
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.wait()
			return "", fmt.Errorf("%s does not start: %w %s", p.cmd.Args[2], err, p.said)
		}
		if _, rest, ok := strings.Cut(line, text); ok {
			return strings.Fields(rest)[0], nil
		}
	}
}

// serve goes on to read what the process prints, until it has ended.
func (p *process) serve() { go p.wait() }

func (p *process) wait() {
	_, _ = io.Copy(io.Discard, p.lines)
	_ = p.cmd.Wait() // it was killed, or says on standard error what happened
	close(p.ended)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// close ends the process. What it leaves is thrown away, so it need not tidy up.
func (p *process) close() {
	if p == nil || p.cmd == nil {
		return
	}
	p.kill()
	<-p.ended
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
		p.close()
		return errors.New("the server does not stop")
	}
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const kept = 2000
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// memory is what a Go runtime says of its memory.
type memory struct {
	mallocs, allocBytes uint64
	inUse               int64 // heap and stacks
}

// memory asks the runtime of the process, after a collection if that matters. A
// process that cannot be asked says nothing.
func (p *process) memory(ctx context.Context, collect bool) (memory, error) {
	if p == nil || p.control == "" {
		return memory{}, nil
	}
	target := p.control + "/debug/pprof/heap?debug=1"
	if collect {
		target += "&gc=1"
	}
	text, err := p.ask(ctx, http.MethodGet, target, nil)
	if err != nil {
		return memory{}, err
	}
	stats := memStats(text)
	return memory{
		mallocs: stats["Mallocs"], allocBytes: stats["TotalAlloc"],
		inUse: int64(stats["HeapInuse"] + stats["Stack"]),
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

// metric asks for a number that a server exports: the sum, if there are several with
// labels.
func (s *side) metric(ctx context.Context, name string) (float64, error) {
	text, err := s.process.ask(ctx, http.MethodGet, s.process.control+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range bytes.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if series, _, _ = strings.Cut(series, "{"); !ok || series != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, fmt.Errorf("the server has no metric %s", name)
	}
	return sum, nil
}

// ask makes a request to the control listener.
func (p *process) ask(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if p.credential != "" {
		r.Header.Set("Authorization", "Bearer "+p.credential)
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
