//go:build linux

package trust_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	pressureRounds = flag.Int("pressure.rounds", 0, "measure what ordinary clients notice of each attack, in so many rounds; 0 for not at all")
	pressureNice   = flag.Int("pressure.nice", 19, "how nice attackers are: 0 lets them take the processor from the server and the ordinary client")
	pressureOnly   = flag.String("pressure.only", "", "measure only the attacks whose name has this in it")
)

// TestPressure measures how long requests of ordinary clients take beside each attack,
// and prints a table. The rounds of calm and of attack take turns, so that both see the
// same machine. Nothing fails by time.
func TestPressure(t *testing.T) {
	if *pressureRounds == 0 {
		t.Skip("it measures time; ask for it with -pressure.rounds")
	}
	var rows []*pressureRow
	for i, p := range pressures() {
		if strings.Contains(p.name, *pressureOnly) {
			rows = append(rows, measurePressure(t, i, p.name))
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| attack\t| small: calm\t| attack\t| ratio\t| large: calm\t| attack\t| ratio\t| growth\t| server\t| attacker\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range rows {
		fmt.Fprintln(table, r)
	}
	_ = table.Flush()
}

// A pressureRow is what came of one attack.
type pressureRow struct {
	name         string
	calm, during sample
	growth       int
	// server and attacker are what they took of one processor during the attack, in
	// percent.
	server, attacker int
}

// A sample is how long requests took.
type sample struct{ small, large []time.Duration }

func (r *pressureRow) String() string {
	text := "| " + r.name
	for _, s := range [][2][]time.Duration{{r.calm.small, r.during.small}, {r.calm.large, r.during.large}} {
		calm, during := percentile99(s[0]), percentile99(s[1])
		text += fmt.Sprintf("\t| %.1f\t| %.1f\t| %.1f", milliseconds(calm), milliseconds(during), float64(during)/float64(calm))
	}
	return text + fmt.Sprintf("\t| %d MiB\t| %d %%\t| %d %%\t|", r.growth>>20, r.server, r.attacker)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measurePressure has one attack and calm take turns at a server of its own.
func measurePressure(t *testing.T, attack int, name string) *pressureRow {
	t.Helper()
	p := startProcess(t, "--dev", "--dev-host", "h", "--admin-addr", "127.0.0.1:0")
	defer p.kill()
	small, large := newClient(t, p, 1), newClient(t, p, 2)
	large.must(t, request{method: "PUT", target: "/middle.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1500) + `]`})
	large.must(t, request{method: "PUT", target: "/large.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1<<16) + `]`})
	large.must(t, request{method: "PUT", target: "/long.json", body: `"` + strings.Repeat("long", 1<<18) + `"`})
	r := &pressureRow{name: name}
	warm := sample{}
	warm.add(t, small, large)
	before := residentBytes(p.pid())
	var attacked, server, attacker time.Duration
	for range *pressureRounds {
		r.calm.add(t, small, large)
		a := startAttacker(t, attackerOrder{attack, p.dir, p.address(), *pressureNice})
		began, used := time.Now(), processorMillis(p.pid())
		r.during.add(t, small, large)
		attacked += time.Since(began)
		server += time.Duration(processorMillis(p.pid())-used) * time.Millisecond
		attacker += a.end(t)
		p.awaitMetric(t, "livetree_inflight_requests", 0)
	}
	r.growth = residentBytes(p.pid()) - before
	r.server, r.attacker = int(100*server/attacked), int(100*attacker/attacked)
	t.Log(r)
	return r
}

// add measures ordinary clients: small writes and reads, and some of 240 KB.
func (s *sample) add(t *testing.T, small, large *client) {
	t.Helper()
	for i := range 300 {
		began := time.Now()
		r := request{method: "PUT", target: "/busy.json", body: fmt.Sprintf(`{"n":%d}`, i)}
		if i%2 == 1 {
			r = request{method: "GET", target: "/busy.json"}
		}
		if a, _, err := small.send(r); err != nil || a.status != http.StatusOK {
			t.Errorf("an ordinary %s is answered %d %.200s, %v", r.method, a.status, a.body, err)
		}
		s.small = append(s.small, time.Since(began))
		if i%10 == 0 {
			s.large = slices.Concat(s.large, workLarge(t, large, "pressure", 1))
		}
	}
}

// An attacker is a process that attacks.
type attacker struct {
	command *exec.Cmd
	input   io.Closer
}

// startAttacker returns when the attack has begun.
func startAttacker(t *testing.T, order attackerOrder) *attacker {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run", "^TestAttacker$")
	c.Env, c.Stderr = append(os.Environ(), pressureVariable+"="+string(text)), os.Stderr
	input, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	a := &attacker{c, input}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "begun\n" {
		a.end(t)
		t.Fatalf("the attacker says %q, %v", line, err)
	}
	return a
}

// end ends the attack and returns the attacker's processor time.
func (a *attacker) end(t *testing.T) time.Duration {
	t.Helper()
	_ = a.input.Close()
	late := time.AfterFunc(patience, func() { _ = a.command.Process.Kill() })
	defer late.Stop()
	if err := a.command.Wait(); err != nil {
		t.Logf("the attacker ended by %v", err)
	}
	return a.command.ProcessState.UserTime() + a.command.ProcessState.SystemTime()
}
