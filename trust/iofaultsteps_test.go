//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// live goes through the scenario until the server is gone, or told to end.
func (r *faultRun) live(out io.Reader) {
	lines := bufio.NewScanner(out)
	for life := 0; lines.Scan(); life++ {
		found := listening.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		r.client = dialClient(r.t, r.data(), found[1], 1+life%2)
		r.serve(life)
		r.client.http.CloseIdleConnections()
		_ = r.command.Process.Signal(syscall.SIGTERM) // it may be gone
	}
}

// serve is one life of the server: all verbs, conditions, refusals, rules with an
// index, a query, a backup, and a stream beside.
func (r *faultRun) serve(life int) {
	if !r.decide() || !r.put() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() { r.listen(ctx) })
	defer listening.Wait()
	defer cancel()
	for i := range 25 {
		goesOn := true
		switch {
		case i == 8:
			goesOn = r.setRules(life)
		case i == 16:
			r.backup(life)
		case i%6 == 5:
			goesOn = r.refusedWrite()
		case i%6 == 4:
			goesOn = r.note(r.transaction)
		default:
			goesOn = r.put()
		}
		if !goesOn {
			return
		}
	}
	r.query()
}

// decide looks what became of a write in doubt, after a restart.
func (r *faultRun) decide() bool {
	if r.doubt == nil {
		return true
	}
	doubt := r.doubt
	if err := r.verify(); err != nil {
		r.doubt = doubt
		return false
	}
	r.enterState()
	return true
}

// put makes a random write by one of all verbs.
func (r *faultRun) put() bool { return r.note(r.write) }

// note does something that writes, and enters the state if it was acknowledged.
func (r *faultRun) note(write func() bool) bool {
	r.count++
	before := r.books.acknowledged
	goesOn := write()
	if r.books.acknowledged > before {
		r.enterState()
	}
	return goesOn
}

// enterState enters that the place is as the book says.
func (r *faultRun) enterState() { r.state = r.tree.Export(r.place) }

// setRules asks for an index.
func (r *faultRun) setRules(life int) bool {
	rules := fmt.Sprintf(`{"rules":{".read":true,".write":true,"w0":{".indexOn":["x%d","wide"]}}}`, life)
	r.rules, r.isRuled = append(r.rules, rules), false
	a, _, err := r.client.send(request{method: "PUT", target: "/.settings/rules.json?ns=" + r.database + "&auth=" + secret, body: rules})
	r.isRuled = err == nil && a.status == http.StatusOK
	return r.isRuled
}

// query reads by the index, whatever is answered: it may not be built.
func (r *faultRun) query() {
	_, _, _ = r.client.send(request{method: "GET", target: target(r.database, r.place, false, `orderBy="wide"`, "limitToLast=2")})
}

// backup asks for one. It fails after the checkpoint, which is in memory, and does
// the store no harm.
func (r *faultRun) backup(life int) {
	operator := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(r.data(), "admin", name)) // then the request fails
		return strings.TrimSpace(string(text))
	}
	body, _ := json.Marshal(map[string]string{"target": filepath.Join(r.Dir, fmt.Sprintf("backup%d", life))})
	req, err := http.NewRequest("POST", operator("addr")+"/v1/backup", strings.NewReader(string(body)))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+operator("token"))
	if a, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
}

// listen streams the place and enters what it is told.
func (r *faultRun) listen(ctx context.Context) {
	stream := request{method: "GET", target: target(r.database, r.place, false), header: []string{"Accept", "text/event-stream"}}
	req, err := stream.build(ctx, r.client.base)
	if err != nil {
		return
	}
	answer, err := r.client.http.Do(req)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			r.events++
			r.books.saw(data)
		}
	}
}
