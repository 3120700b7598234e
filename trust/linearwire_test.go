//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wiretest"
)

// A wireTalk asks one thing at a time by the protocol of the SDKs. It listens to nothing.
type wireTalk struct {
	dial func() (*wiretest.Link, error)
	link *wiretest.Link // nil while there is none
	last int64
	// heard is what came beside answers, if it is wanted.
	heard []string
	// isCareless leaves out the hashes of transactions: a planted bug.
	isCareless bool
}

// ask sends a request and returns the answer. If there is none, isSent says whether the
// server may have seen it.
func (w *wireTalk) ask(action, body string) (status string, d json.RawMessage, isSent bool, err error) {
	if w.link == nil {
		if w.link, err = w.dial(); err != nil {
			w.link = nil
			return "", nil, false, err
		}
	}
	defer func() {
		if err != nil {
			w.link.Close()
			w.link = nil
		}
	}()
	w.last++
	if err := w.link.Send(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":%q,"b":%s}}`, w.last, action, body)); err != nil {
		return "", nil, true, err
	}
	for {
		message, err := w.link.Next()
		if err != nil {
			return "", nil, true, err
		}
		var m wireMessage
		var b struct {
			Status string          `json:"s"`
			Data   json.RawMessage `json:"d"`
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			return "", nil, true, err
		}
		if m.Data.Number == nil || *m.Data.Number != w.last {
			if m.Kind == "d" {
				w.heard = append(w.heard, message)
			}
			continue
		}
		err = json.Unmarshal(m.Data.Body, &b)
		return b.Status, b.Data, true, err
	}
}

func (w *wireTalk) close() {
	if w.link != nil {
		w.link.Close()
	}
}

// spoken returns an act that has the same meaning and that the SDKs can do: they read with
// priorities, and make keys themselves.
func (a act) spoken(id, count int) act {
	switch {
	case a.view != "":
		a.view = "export"
	case a.method == "POST":
		a.method, a.path = "PUT", []string{"b", fmt.Sprintf("s%d-%d", id, count)}
	}
	return a
}

// perform does an act as the SDKs do: a transaction brings the hash of what it rests on.
func (w *wireTalk) perform(a act) (answer, sending, error) {
	action, body := a.write.spoken()
	if a.view != "" {
		action, body = "g", fmt.Sprintf(`{"p":%q,"q":{}}`, "/"+strings.Join(a.path, "/"))
	}
	if a.condition != "" && !w.isCareless {
		node, err := tree.DecodeBytes([]byte(a.condition), tree.DecodeOptions{})
		if err != nil {
			return answer{}, sending{}, err
		}
		body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"h":%q}`, sdkhash.Of(node))
	}
	status, d, isSent, err := w.ask(action, body)
	got := answer{status: http.StatusServiceUnavailable}
	switch status {
	case "ok":
		got.status = http.StatusOK
		if a.view != "" {
			got.body = string(d)
		}
	case "datastale":
		got.status = http.StatusPreconditionFailed
	case "permission_denied", "failure", "invalid_parameters", "too_big":
		got = answer{status: http.StatusBadRequest, body: string(d)}
	}
	return got, sending{isSent: isSent}, err
}

// TestLinearFindsCarelessTransactions shows that a history is refused in which transactions
// of SDKs go through whatever has changed.
func TestLinearFindsCarelessTransactions(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev")
	l := newLinear(p, 1, func(major int) *client { return newClient(t, p, major) })
	l.speak = func(database string) *wireTalk { return &wireTalk{dial: dialWire(p, database), isCareless: true} }
	for range 100 { // most are found in the first
		if err := l.batch(1, 6, 38); err != nil {
			t.Fatal(err)
		}
		if len(l.illegal) > 0 {
			return
		}
	}
	t.Error("nothing was found in 100 histories")
}
