package bench_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/server"
)

// TestScenarios runs all kinds of scenarios. Those that are left out differ in their
// size, or in what they ask for, alone.
func TestScenarios(t *testing.T) {
	t.Parallel()
	alike := []string{"record-get", "leaf-put-1", "patch", "mixed", "shallow", "query-10000", "range-1000"}
	names := append(bench.QuickScenarios(), "idle-1000")
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(alike, name) })
	if raceEnabled { // what the others do is the same, and takes minutes
		names = []string{"leaf-get", "fan-out-100", "sdk-set"}
	}
	o := small(t, names...)
	var told []string
	o.Done = func(r bench.Result) { told = append(told, r.Name) }
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	if !slices.Equal(told, names) {
		t.Errorf("Done is called for %q, want %q", told, names)
	}
	for _, r := range report.Results {
		switch {
		case r.Bare == nil:
			t.Errorf("%s has no figures of the bare server", r.Name)
		case r.Goal.IdleBytes[0] > 0:
			if r.Livetree.IdleBytes <= 0 || r.Bare.IdleBytes <= 0 && r.Name != "sdk-listens" {
				t.Errorf("%s: %+v, %+v; want that streams need memory", r.Name, r.Livetree, *r.Bare)
			}
		case !plausible(r.Livetree) || !plausible(*r.Bare):
			t.Errorf("%s: %+v, %+v; want rates and times", r.Name, r.Livetree, *r.Bare)
		case runtime.GOOS == "linux" && (r.CPURatio == nil || r.CPURatio.Low <= 0 || r.CPURatio.Low > r.CPURatio.High):
			t.Errorf("%s: the ratio is %+v", r.Name, r.CPURatio)
		}
	}
	if report.Seconds <= 0 || report.Machine.Cores < 1 {
		t.Errorf("the report is of %+v and %g seconds", report.Machine, report.Seconds)
	}
}

func plausible(f bench.Figures) bool {
	return f.Rate > 0 && f.P50Micros > 0 && f.P99Micros >= f.P50Micros && (runtime.GOOS != "linux" || f.CPUMicros > 0 && f.RSSBytes > 1<<20)
}

// TestInterrupted ends a run in the middle.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"leaf-put-64: round 1", "fan-out-100: round 1", "fan-out-100: opening", "sdk-pipeline: round 1", "sdk-back-100: round 1",
		"h2-leaf-get-hs256: round 1", "handshake-resumed: round 1"} {
		t.Run(at, func(t *testing.T) {
			name, _, _ := strings.Cut(at, ":")
			o := small(t, "leaf-get", name)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o.Progress = func(text string) {
				if strings.HasPrefix(text, at) {
					cancel()
				}
			}
			report, err := bench.Run(ctx, o)
			if !errors.Is(err, context.Canceled) || len(report.Results) != 1 || report.Results[0].Name != "leaf-get" {
				t.Errorf("the run ends with %v and %d results, want that it was cancelled, with the first result", err, len(report.Results))
			}
			expectEmpty(t, o.Dir)
		})
	}
}

func TestWrongOptions(t *testing.T) {
	for _, test := range []struct {
		change func(*bench.Options)
		want   string
	}{
		{func(o *bench.Options) { o.Scenarios = []string{"leaf-gte"} }, `there is no scenario "leaf-gte": choose from leaf-get`},
		{func(o *bench.Options) { o.Rounds = -1 }, "rounds: -1 is not between"},
		{func(o *bench.Options) { o.Requests = math.MaxInt }, "requests: "},
		{func(o *bench.Options) { o.Connections = 1 << 20 }, "connections: "},
		{func(o *bench.Options) { o.Dir = filepath.Join(o.Dir, "missing") }, "no such file"},
		{func(o *bench.Options) { o.Executable = filepath.Join(o.Dir, "missing") }, "no such file"},
		{func(o *bench.Options) { o.Target.URL = "localhost:9000" }, "must be like https://"},
		{func(o *bench.Options) { o.Target = bench.Target{URL: "http://db.example.com", Auth: "s"} }, "needs an https: URL"},
		{func(o *bench.Options) { o.Target = bench.Target{URL: "http://127.example.com", Auth: "s"} }, "needs an https: URL"},
		{func(o *bench.Options) { o.Target.URL, o.Scenarios = "https://localhost:1", []string{"rule-get"} }, "needs a server of its own"},
		{func(o *bench.Options) { o.Target.URL = "https://127.0.0.1:1" }, "connection refused"},
	} {
		o := small(t, "leaf-get")
		dir := o.Dir
		test.change(&o)
		if _, err := bench.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Run fails with %v, want %q", err, test.want)
		}
		expectEmpty(t, dir)
	}
}

// TestAllElsewhere: all is all that a server which runs already can take.
func TestAllElsewhere(t *testing.T) {
	got, err := bench.Chosen([]string{"all"}, true)
	if err != nil || !slices.Contains(got, "put-10mb") || slices.Contains(got, "rule-get") || slices.Contains(got, "idle-1000") || slices.Contains(got, "sdk-set") {
		t.Errorf("with --url, all is %q (%v); want no scenario that needs rules or streams", got, err)
	}
	every, err := bench.Chosen([]string{"leaf-get", "all"}, false)
	if err != nil || len(every) != len(bench.Scenarios()) {
		t.Errorf("all is %q (%v), want every scenario once", every, err)
	}
}

// TestTarget measures a server that runs already, and leaves it as it was.
func TestTarget(t *testing.T) {
	const secret = "tArGeTtArGeTtArGeTtArGeT"
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended, abort := announced{io.Discard, make(chan string, 1)}, make(chan error, 1), make(chan struct{})
	go func() {
		ended <- server.Run(ctx, server.Config{Data: dir, Addr: "127.0.0.1:0", DefaultDatabase: "default", Secret: secret,
			Logger: slog.New(slog.DiscardHandler), Out: ready, Abort: abort})
	}()
	defer func() {
		cancel()
		close(abort)
		<-ended
	}()
	_, rest, _ := strings.Cut(<-ready.text, "listening on ")
	o := small(t, "leaf-get", "record-get", "patch", "push", "shallow")
	o.Executable = ""
	o.Target = bench.Target{URL: strings.Fields(rest)[0], Database: "default", Auth: secret, CA: filepath.Join(dir, "tls", "ca.pem"), PID: os.Getpid()}
	o.Requests = 10
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Bare != nil || r.CPURatio != nil || !plausible(r.Livetree) {
			t.Errorf("%s: %+v, want figures of the server alone", r.Name, r)
		}
	}
	if len(report.Results) != len(o.Scenarios) {
		t.Errorf("there are %d results, want %d", len(report.Results), len(o.Scenarios))
	}
	if got := get(t, o.Target, "/.json?shallow=true", secret); got != "null" {
		t.Errorf("a run leaves %s, want null", got)
	}
	o.Target.Auth = "wrong"
	if _, err := bench.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is answered 401") {
		t.Errorf("with a wrong secret Run fails with %v, want that it is refused", err)
	}
}

func get(t *testing.T, target bench.Target, path, secret string) string {
	t.Helper()
	text, err := os.ReadFile(target.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestGrow(t *testing.T) {
	t.Parallel()
	o := small(t)
	report, err := bench.Grow(t.Context(), o, bench.Growth{MaxLeaves: 10_000, Databases: 5})
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	if len(report.Growth) != 2 || report.Growth[0].Leaves != 1000 || report.Growth[1].Leaves != 10_000 {
		t.Fatalf("the steps are %+v, want 1000 and 10000 leaves", report.Growth)
	}
	for _, step := range report.Growth {
		if !plausible(step.Get) || !plausible(step.Put) || !plausible(step.Query) || !plausible(step.Range) ||
			min(step.OpenMillis, step.CheckMillis, step.BackupMillis) <= 0 || step.DiskBytes <= 0 || step.WriteAmplification < 0 {
			t.Errorf("with %d leaves: %+v, want rates and times", step.Leaves, step)
		}
	}
	if d := report.Databases; d == nil || d.Count != 5 || d.OpenMillis <= 0 || d.MakePerSec <= 0 {
		t.Errorf("databases: %+v", d)
	}
	for _, want := range []string{"LEAVES", "\n10000 ", "5 databases: "} {
		if got := report.Tables(); !strings.Contains(got, want) {
			t.Errorf("the table is\n%s\nwant %q in it", got, want)
		}
	}
	if _, err := bench.Grow(t.Context(), o, bench.Growth{MaxLeaves: -1}); err == nil {
		t.Error("it grows by -1 leaves")
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	o := small(t)
	var told strings.Builder
	o.Row = func(text string) { told.WriteString(text) }
	report, err := bench.Stall(t.Context(), o, bench.Stalls{Leaves: 2000, BodyBytes: 100_000, Calm: 200_000_000})
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	var names []string
	for _, s := range report.Stalls {
		names = append(names, s.Name)
		for _, w := range []bench.Waits{s.Reads, s.Writes} {
			if w.Count < 1 || w.P50Micros <= 0 || w.P50Micros > w.P99Micros || w.P99Micros > w.MaxMicros {
				t.Errorf("%s: %+v, want times in order", s.Name, w)
			}
		}
	}
	if want := []string{"calm", "index", "backup", "export", "rules", "compact", "put", "delete", "busy", "expiry", "hooks", "archive"}; !slices.Equal(names, want) {
		t.Errorf("it is measured while %q, want %q", names, want)
	}
	if got := report.Tables(); !strings.Contains(got, "\ndelete ") || got != told.String() {
		t.Errorf("the table is\n%s\nand it was told\n%s", got, told.String())
	}
	o.Scenarios = []string{"leaf-get"}
	if _, err := bench.Stall(t.Context(), o, bench.Stalls{}); err == nil || !strings.Contains(err.Error(), "choose from calm, index,") {
		t.Errorf("with a scenario of another run Stall fails with %v, want what there is", err)
	}
	if _, err := bench.Stall(t.Context(), o, bench.Stalls{Leaves: 1}); err == nil {
		t.Error("it stalls by 1 leaf")
	}
}

func TestPeerAlone(t *testing.T) {
	for _, args := range [][]string{{}, {"bare"}, {"other"}, {"bare", "no", "such", "files"}} {
		if err := bench.Peer(t.Context(), args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("Peer(%q) does not fail", args)
		}
	}
}
