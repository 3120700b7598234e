package hookcli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/hookcli"
)

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// A listener answers commands in the place of a server: what it was asked, and what it answers.
type listener struct {
	answer  string
	fails   error
	asked   []string
	printed bytes.Buffer
}

func (l *listener) do(_ context.Context, method, path string, request, into any) error {
	line := method + " " + path
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return err
		}
		line += " " + string(text)
	}
	l.asked = append(l.asked, line)
	if l.fails != nil || into == nil {
		return l.fails
	}
	return json.Unmarshal([]byte(l.answer), into)
}

// run runs a command line of livetree hook.
func (l *listener) run(args ...string) error {
	root := &cobra.Command{Use: "hook", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(io.Discard)
	root.AddCommand(hookcli.Commands(hookcli.Surroundings{
		Operator: func(*pflag.FlagSet) hookcli.Operator {
			return hookcli.Operator{Do: l.do, Print: func(format string, args ...any) { fmt.Fprintf(&l.printed, format, args...) }}
		},
		Takes: func(names ...string) cobra.PositionalArgs { return cobra.ExactArgs(len(names)) },
	})...)
	root.SetArgs(args)
	return root.ExecuteContext(context.Background())
}

const (
	orders  = `{"name":"orders","path":"/orders/$id","url":"https://example.com/in","events":["create","delete"],"created":"2026-01-02T03:04:05Z","secrets":1`
	counted = `,"stat":{"delivered":7,"failed":1,"retried":2,"skipped":3,"pending":4,"bytes":500,"lag":1.25,"failing":true}`
)

// TestCommands holds each command against what it asks the listener for, and what it prints of the answer.
func TestCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, answer, asked, printed string
	}{
		{
			"add orders --path /orders/$id --url https://example.com/in", orders + `,"secret":"` + secret + `"}`,
			`POST /v1/databases/default/hooks {"name":"orders","path":"/orders/$id","url":"https://example.com/in"}`,
			"added the hook orders of \"default\" for /orders/$id\nits secret, which is not shown again: " + secret + "\n",
		},
		{
			"add orders --path /a --url u --events create,delete --db my/shop --secret-file " + file, orders + "}",
			`POST /v1/databases/my%2Fshop/hooks {"name":"orders","path":"/a","url":"u","events":["create","delete"],"secret":"` + secret + `"}`,
			"added the hook orders of \"my/shop\" for /orders/$id\n",
		},
		{"list", `{"hooks":[]}`, "GET /v1/databases/default/hooks", ""},
		{
			"list --db shop", `{"hooks":[` + orders + "}," + orders + counted + "}," + orders + `,"paused":"gone"},{"name":"x","path":"/\u202ex","url":"u"}]}`,
			"GET /v1/databases/shop/hooks",
			"orders               running       0.0 s  /orders/$id                    https://example.com/in\n" +
				"orders               failing       1.2 s  /orders/$id                    https://example.com/in\n" +
				"orders               paused        0.0 s  /orders/$id                    https://example.com/in\n" +
				"x                    secret?       0.0 s  /\\u202ex                       u\n",
		},
		{
			"show orders", orders + counted + `,"paused":"operator"}`, "GET /v1/databases/default/hooks/orders",
			"path       /orders/$id\nurl        https://example.com/in\nevents     create,delete\nstate      paused operator\ncreated    2026-01-02T03:04:05Z\n" +
				"delivered  7 since the server was started, 1 given up, 2 tried again, 3 skipped\nwaiting    4 deliveries or more, the oldest for 1.2 s\n" +
				"on disk    500 bytes, with the last deliveries, which can be replayed\n",
		},
		{
			"test orders", `{"id":"msg_test-1","at":"2026-01-02T03:04:05Z","try":1,"event":"test","status":204,"ms":1.25}`, "POST /v1/databases/default/hooks/orders/test {}",
			"2026-01-02T03:04:05Z msg_test-1 test try 1 1.2 ms 204\n",
		},
		{"pause orders", "", `PATCH /v1/databases/default/hooks/orders {"paused":true}`, "paused the hook orders of \"default\"\n"},
		{"resume orders", "", `PATCH /v1/databases/default/hooks/orders {"paused":false}`, "resumed the hook orders of \"default\"\n"},
		{"remove a/b", "", "DELETE /v1/databases/default/hooks/a%2Fb", "removed the hook a/b of \"default\"\n"},
		{
			"rotate orders", `{"secrets":2,"secret":"` + secret + `"}`, `POST /v1/databases/default/hooks/orders/rotate {"drop_old":false,"secret":""}`,
			"the hook orders of \"default\" signs with 2 secrets\nits secret, which is not shown again: " + secret + "\n",
		},
		{
			"rotate orders --secret-file " + file, `{"secrets":2}`, `POST /v1/databases/default/hooks/orders/rotate {"drop_old":false,"secret":"` + secret + `"}`,
			"the hook orders of \"default\" signs with 2 secrets\n",
		},
		{
			"rotate orders --drop-old", `{"secrets":1}`, `POST /v1/databases/default/hooks/orders/rotate {"drop_old":true,"secret":""}`,
			"the hook orders of \"default\" signs with 1 secret\n",
		},
		{
			"deliveries orders", `{"deliveries":[{"id":"msg_1-1-5-0","at":"2026-01-02T03:04:05Z","try":3,"event":"create","path":"/orders/1","status":500,"answer":"no\u001b[2J","ms":9},
				{"id":"gap","at":"2026-01-02T03:04:04Z","try":1,"event":"gap","problem":"refused","ms":0}]}`,
			"GET /v1/databases/default/hooks/orders/deliveries",
			"2026-01-02T03:04:05Z msg_1-1-5-0 create /orders/1 try 3 9.0 ms 500 no\\u001b[2J\n2026-01-02T03:04:04Z gap gap try 1 0.0 ms no answer: refused\n",
		},
		{
			"deliveries orders --replay msg_1/2", "", "POST /v1/databases/default/hooks/orders/deliveries/msg_1%2F2/replay {}",
			"the delivery msg_1/2 is made again\n",
		},
	} {
		l := &listener{answer: test.answer}
		if err := l.run(strings.Fields(test.args)...); err != nil {
			t.Errorf("livetree hook %s: %v", test.args, err)
		}
		if got := strings.Join(l.asked, "\n"); got != test.asked {
			t.Errorf("livetree hook %s asks\n%s\nwant\n%s", test.args, got, test.asked)
		}
		if got := l.printed.String(); got != test.printed {
			t.Errorf("livetree hook %s prints\n%s\nwant\n%s", test.args, got, test.printed)
		}
	}
}

// TestCommandsFail: what the listener refuses is the error of the command, and nothing is printed.
func TestCommandsFail(t *testing.T) {
	t.Parallel()
	refused := errors.New("no hook that is called orders")
	for _, args := range []string{
		"add orders --path /a --url u", "list", "show orders", "test orders", "pause orders", "resume orders", "rotate orders", "remove orders", "deliveries orders", "deliveries orders --replay x",
	} {
		l := &listener{fails: refused}
		if err := l.run(strings.Fields(args)...); !errors.Is(err, refused) || l.printed.Len() > 0 || len(l.asked) != 1 {
			t.Errorf("livetree hook %s: %v, asked %q, printed %q", args, err, l.asked, l.printed.String())
		}
	}
	for args, want := range map[string]string{
		"add": "arg", "show": "arg", "show a b": "arg", "add orders --path /a --url u --secret-file /none/there": "/none/there", "rotate orders --secret-file /none/there": "/none/there",
	} {
		l := &listener{}
		if err := l.run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) || len(l.asked) > 0 {
			t.Errorf("livetree hook %s: %v, asked %q; want an error with %q", args, err, l.asked, want)
		}
	}
}

// TestTestFails: a receiver that does not take the test makes the command fail, after its answer was printed.
func TestTestFails(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"m","try":1,"status":302,"ms":1}`:                   "302",
		`{"id":"m","try":1,"problem":"connection refused","ms":1}`: "no answer: connection refused",
	} {
		l := &listener{answer: answer}
		if err := l.run("test", "orders"); err == nil || !strings.Contains(l.printed.String(), want) {
			t.Errorf("a test that is answered %s: %v, printed %q; want an error and %q", answer, err, l.printed.String(), want)
		}
	}
}
