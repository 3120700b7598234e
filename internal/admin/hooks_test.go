package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/tree"
)

const (
	hooksOfShop = "/v1/databases/shop/hooks"
	ownSecret   = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// A hookStand is a stand whose hooks deliver to a receiver. It runs on fake time.
type hookStand struct {
	*stand
	mu       sync.Mutex
	status   int // that the receiver answers with; 0 for no answer
	received []string
	seen     []string // all that was answered
}

// RoundTrip is the receiver.
func (s *hookStand) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		return nil, errors.New("it is not there")
	}
	s.received = append(s.received, r.Header.Get("Webhook-Signature")+" "+string(body))
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader("thanks"))}, nil
}

func newHookStand(t *testing.T, change func(*admin.Options)) *hookStand {
	t.Helper()
	guard, err := deliver.NewGuard(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &hookStand{status: 204}
	var runner *deliver.Runner
	s.stand = newShops(t, func(o *admin.Options) {
		runner = deliver.New(deliver.Options{
			Databases: o.Catalog, Guard: guard, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Limits: deliver.DefaultLimits(), Transport: s,
		})
		o.Hooks, o.HookStats = runner, runner.Stats
		if change != nil {
			change(o)
		}
	})
	s.observers.Hooked = runner.Hooked
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runner.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

// want makes a request with the credential, checks the status, and reads the answer into a value that may be nil.
func (s *hookStand) want(status int, method, path, body string, into any) string {
	s.t.Helper()
	w := s.do(method, path, credential, body)
	text := w.Body.String()
	s.seen = append(s.seen, text)
	if w.Code != status {
		s.t.Errorf("%s %s %s = %d %s, want %d", method, path, body, w.Code, text, status)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			s.t.Errorf("%s %s is answered %s: %v", method, path, text, err)
		}
	}
	return text
}

// put writes a node below /orders, and waits until all is delivered that can be.
func (s *hookStand) put(key string) {
	s.t.Helper()
	d, err := s.catalog.Database("shop")
	if err != nil {
		s.t.Fatal(err)
	}
	path, err := tree.ParsePath("orders/" + key)
	if err != nil {
		s.t.Fatal(err)
	}
	node, err := tree.Decode(strings.NewReader(`{"n":1}`), tree.DecodeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := d.Write(s.t.Context(), engine.Request{Write: tree.Put(path, node), Who: auth.Identity{Admin: true}}); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// deliveries returns the attempts of the hook orders.
func (s *hookStand) deliveries() (list []deliver.Record) {
	s.t.Helper()
	var answer struct{ Deliveries []deliver.Record }
	s.want(200, "GET", hooksOfShop+"/orders/deliveries", "", &answer)
	return answer.Deliveries
}

func TestHookRoutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHookStand(t, nil)
		if text := s.want(200, "GET", hooksOfShop, "", nil); !strings.Contains(text, `"hooks":[]`) {
			t.Errorf("a database without hooks lists %s", text)
		}
		var added, one admin.Hook
		s.want(201, "POST", hooksOfShop, `{"name":"orders","path":"/orders/$id","url":"https://example.com/in","events":["update","create"]}`, &added)
		if err := hook.CheckSecret(added.Secret); err != nil || added.Secrets != 1 || !slices.Equal(added.Events, []string{"create", "update"}) {
			t.Errorf("a new hook is %+v: %v", added, err)
		}
		s.put("a")
		s.want(200, "GET", hooksOfShop+"/orders", "", &one)
		if one.Stat == nil || one.Stat.Delivered != 1 || one.Path != "/orders/$id" || one.URL != "https://example.com/in" || one.Paused != "" {
			t.Errorf("after a delivery the hook is %+v", one)
		}
		list := s.deliveries()
		if len(list) != 1 || list[0].Status != 204 || list[0].Answer != "thanks" || list[0].Event != "create" || list[0].Path != "/orders/a" || list[0].Try != 1 {
			t.Fatalf("the deliveries are %+v", list)
		}
		s.want(202, "POST", hooksOfShop+"/orders/deliveries/"+list[0].ID+"/replay", "", nil)
		synctest.Wait()
		if list := s.deliveries(); len(list) != 2 || !list[0].Replay || list[0].ID != list[1].ID {
			t.Errorf("after a replay the deliveries are %+v", list)
		}
		s.put(strings.Repeat("k", 700))
		if list := s.deliveries(); !strings.HasSuffix(list[0].Path, "kkk…") || len(list[0].Path) > 600 {
			t.Errorf("a long path is recorded as %s", list[0].Path)
		}
		var tested deliver.Record
		s.want(200, "POST", hooksOfShop+"/orders/test", "{}", &tested)
		if tested.Status != 204 || tested.Event != "test" {
			t.Errorf("the test is %+v", tested)
		}
		s.want(200, "DELETE", hooksOfShop+"/orders", "", nil)
		s.want(404, "GET", hooksOfShop+"/orders", "", nil)
	})
}

func TestHooksPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHookStand(t, nil)
		s.want(201, "POST", hooksOfShop, `{"name":"orders","path":"/orders/$id","url":"https://example.com/in"}`, nil)
		s.put("a")
		id := s.deliveries()[0].ID
		var h admin.Hook
		s.want(200, "PATCH", hooksOfShop+"/orders", `{"paused":true}`, &h)
		s.put("b")
		if h.Paused != hook.ByOperator || len(s.received) != 1 {
			t.Errorf("a paused hook is %+v and has delivered %d", h, len(s.received))
		}
		s.want(409, "POST", hooksOfShop+"/orders/deliveries/"+id+"/replay", "", nil)
		h = admin.Hook{}
		s.want(200, "PATCH", hooksOfShop+"/orders", `{"paused":false,"url":"https://example.com/other"}`, &h)
		synctest.Wait()
		if h.Paused != "" || h.URL != "https://example.com/other" || len(s.received) != 2 {
			t.Errorf("a hook that was resumed is %+v and has delivered %d", h, len(s.received))
		}
		s.status = 410
		s.put("c")
		s.want(200, "GET", hooksOfShop+"/orders", "", &h)
		if h.Paused != hook.Gone {
			t.Errorf("after 410 the hook is %+v", h)
		}
		s.status = 0
		var tested deliver.Record
		s.want(200, "POST", hooksOfShop+"/orders/test", "{}", &tested)
		if tested.Status != 0 || tested.Problem == "" {
			t.Errorf("a test without an answer is %+v", tested)
		}
	})
}

func TestHookRoutesRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHookStand(t, nil)
		s.want(201, "POST", hooksOfShop, `{"name":"orders","path":"/orders/$id","url":"https://example.com/in"}`, nil)
		add := func(name, path, url, more string) string {
			return fmt.Sprintf(`{"name":%q,"path":%q,"url":%q%s}`, name, path, url, more)
		}
		const good = "https://example.com/in"
		for _, test := range []struct {
			status             int
			method, path, body string
			names              string // what the error names
		}{
			{409, "POST", "", add("orders", "/a", good, ""), "orders"},
			{400, "POST", "", add("Orders", "/a", good, ""), "Orders"},
			{400, "POST", "", add("", "/a", good, ""), "name"},
			{400, "POST", "", add("x", "orders", good, ""), "orders"},
			{400, "POST", "", add("x", "/$a/$a", good, ""), "$a"},
			{400, "POST", "", add("x", "/a", "http://example.com/in", ""), "https"},
			{400, "POST", "", add("x", "/a", "https://127.0.0.1/in", ""), "127.0.0.1"},
			{400, "POST", "", add("x", "/a", "https://a:b@example.com/", ""), "password"},
			{400, "POST", "", add("x", "/a", "nothing", ""), "url"},
			{400, "POST", "", add("x", "/a", good, `,"events":["creation"]`), "creation"},
			{400, "POST", "", add("x", "/a", good, `,"secret":"hunter2"`), "secret"},
			{400, "POST", "", add("x", "/a", good, `,"color":"red"`), "body"},
			{400, "POST", "", `[]`, "body"},
			{404, "GET", "/none", "", "none"},
			{404, "GET", "/none/deliveries", "", "none"},
			{404, "PATCH", "/none", `{"paused":true}`, "none"},
			{404, "DELETE", "/none", "", "none"},
			{404, "POST", "/none/test", "{}", "none"},
			{404, "POST", "/none/rotate", "{}", "none"},
			{404, "POST", "/none/deliveries/x/replay", "", "none"},
			{400, "PATCH", "/orders", `{"path":"/a"}`, "body"},
			{400, "PATCH", "/orders", `{}`, "nothing"},
			{400, "PATCH", "/orders", `{"url":"http://10.0.0.1/"}`, "https"},
			{400, "POST", "/orders/rotate", `{"secret":"whsec_short"}`, "secret"},
			{400, "POST", "/orders/deliveries/msg_1-2-3-4/replay", "", "msg_1-2-3-4"},
		} {
			if text := s.want(test.status, test.method, hooksOfShop+test.path, test.body, nil); !strings.Contains(text, test.names) || strings.Contains(text, "hunter2") {
				t.Errorf("%s %s %s is refused with %s, which should name %s", test.method, test.path, test.body, text, test.names)
			}
		}
		s.want(404, "GET", "/v1/databases/none/hooks", "", nil)
		s.put("a")
		id := s.deliveries()[0].ID
		last := id[strings.LastIndex(id, "-")+1:]
		s.want(404, "POST", hooksOfShop+"/orders/deliveries/"+strings.TrimSuffix(id, last)+"7/replay", "", nil)
		plain := newStand(t, nil)
		plain.database("shop")
		if status, text := plain.get(hooksOfShop); status != http.StatusServiceUnavailable {
			t.Errorf("a server without hooks answers %d %s", status, text)
		}
	})
}

// A secret is in the answer that drew it, and nowhere else: no later answer, no audit line.
func TestHookSecretsAreShownOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "audit.jsonl")
		s := newHookStand(t, func(o *admin.Options) { o.Audit = admin.NewAudit(file) })
		var first, second, kept, given admin.Hook
		s.want(201, "POST", hooksOfShop, `{"name":"orders","path":"/orders/$id","url":"https://example.com/in?key=hidden"}`, &first)
		s.put("a")
		s.want(200, "POST", hooksOfShop+"/orders/rotate", "{}", &second)
		if first.Secret == second.Secret || hook.CheckSecret(second.Secret) != nil || second.Secrets != 2 {
			t.Errorf("a secret is replaced by %+v", second)
		}
		s.put("b")
		if one, two := strings.Count(s.received[0], "v1,"), strings.Count(s.received[1], "v1,"); one != 1 || two != 2 {
			t.Errorf("deliveries are signed by %d and then by %d secrets, want 1 and 2", one, two)
		}
		s.want(200, "POST", hooksOfShop+"/orders/rotate", `{"drop_old":true}`, &kept)
		if kept.Secrets != 1 || kept.Secret != "" {
			t.Errorf("after the old secret was dropped the hook is %+v", kept)
		}
		s.want(200, "POST", hooksOfShop+"/orders/rotate", `{"secret":"`+ownSecret+`"}`, &given)
		if given.Secrets != 2 || given.Secret != "" {
			t.Errorf("with a secret that was given the hook is %+v", given)
		}
		for range 3 { // no more than two are kept
			s.want(200, "POST", hooksOfShop+"/orders/rotate", "{}", &given)
		}
		if given.Secrets != hook.MaxSecrets {
			t.Errorf("there are %d secrets", given.Secrets)
		}
		s.want(200, "GET", hooksOfShop, "", nil)
		s.want(200, "GET", hooksOfShop+"/orders", "", nil)
		s.want(200, "PATCH", hooksOfShop+"/orders", `{"paused":true}`, nil)
		s.want(200, "PATCH", hooksOfShop+"/orders", `{"paused":false}`, nil)
		s.want(200, "PATCH", hooksOfShop+"/orders", `{"url":"https://example.com/"}`, nil)
		s.want(200, "POST", hooksOfShop+"/orders/test", "{}", nil)
		s.want(202, "POST", hooksOfShop+"/orders/deliveries/"+s.deliveries()[0].ID+"/replay", "", nil)
		s.want(200, "DELETE", hooksOfShop+"/orders", "", nil)
		shown := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindAllString(strings.Join(s.seen, " "), -1)
		slices.Sort(shown)
		if len(shown) != 5 || len(slices.Compact(slices.Clone(shown))) != 5 || slices.Contains(shown, ownSecret) {
			t.Errorf("five secrets were drawn, and those in answers are %q", shown)
		}
		s.checkAudit(file)
	})
}

// checkAudit holds the audit list against what TestHookSecretsAreShownOnce does.
func (s *hookStand) checkAudit(file string) {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(string(text), "whsec_") || strings.Contains(string(text), "hidden") {
		s.t.Errorf("the audit list shows a secret or a url: %s", text)
	}
	var actions []string
	for line := range strings.Lines(string(text)) {
		var one admin.Audited
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.t.Fatal(err)
		}
		if one.Database != "shop" || !strings.HasPrefix(one.Subject, "orders") || one.Scope != "operator" {
			s.t.Errorf("an audit line is %s", line)
		}
		actions = append(actions, one.Action)
	}
	want := "added a hook|replaced the secret of a hook|dropped the old secret of a hook|replaced the secret of a hook|replaced the secret of a hook|" +
		"replaced the secret of a hook|replaced the secret of a hook|paused a hook|resumed a hook|changed a hook|tested a hook|repeated a delivery of a hook|removed a hook"
	if got := strings.Join(actions, "|"); got != want {
		s.t.Errorf("the audit list is\n%s\nwant\n%s", got, want)
	}
}

// TestTriggerStatus: what the server does by itself is in the status, for the operator: it names hooks of all databases.
func TestTriggerStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHookStand(t, nil)
		for i := range 7 {
			s.want(201, "POST", hooksOfShop, fmt.Sprintf(`{"name":"h%d","path":"/orders/$id","url":"https://example.com/in"}`, i), nil)
		}
		s.put("a")
		s.status = 500
		s.put("b")
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		var status admin.Status
		s.want(200, "GET", "/v1/status", "", &status)
		if h := status.Triggers.Hooks; h.Hooks != 7 || h.Delivered != 7 || h.Pending != 7 || h.Failing != 7 || len(h.Names) != 5 || h.Names[0] != "shop/h0" {
			t.Errorf("the status has the hooks %+v", h)
		}
		if text := s.do("GET", "/v1/status", signInShop(s.stand), "").Body.String(); strings.Contains(text, "triggers") || strings.Contains(text, "h0") {
			t.Errorf("a holder of a secret is shown %s", text)
		}
	})
}

// The routes are the operator's alone: a hook sends data to another machine.
func TestHooksAreTheOperators(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	shop, found := signInShop(s), 0
	for _, r := range s.handler.Routes() {
		if !strings.Contains(r.Pattern, "/hooks") {
			continue
		}
		found++
		method, path := request(strings.ReplaceAll(r.Pattern, "{hook}", "orders"))
		if w := s.do(method, path, shop, "{}"); w.Code != http.StatusForbidden {
			t.Errorf("%s %s by a holder of the secret = %d, want 403", method, path, w.Code)
		}
	}
	if found != 9 {
		t.Errorf("%d routes of hooks were asked, want 9", found)
	}
}
