package admin_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

var discard = slog.New(slog.DiscardHandler)

func TestDataIsThatOfTheOperator(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	shop := signInShop(s)
	const at = "/v1/databases/shop/data/"
	for _, test := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"PUT", "a/b.json", `{"x":9007199254740993,"y":"z"}`, 200, `{"x":9007199254740993,"y":"z"}`},
		{"GET", "a/b/x.json", "", 200, "9007199254740993"},
		{"GET", "a//b/x.json", "", 200, "9007199254740993"},
		{"GET", ".json?shallow=true", "", 200, `{"a":true}`},
		{"PATCH", "a.json", `{"c/d":1}`, 200, `{"c/d":1}`},
		{"POST", "a/list.json", `1`, 200, `{"name":`},
		{"DELETE", "a/list.json", "", 200, "null"},
		{"PUT", "a/%E2%82%AC%20%22.json", "7", 200, "7"},
		{"GET", "a/%E2%82%AC%20%22.json", "", 200, "7"},
		{"GET", "a.json?format=export", "", 200, `{"b":`},
		{"GET", "a/%2F.json", "", 400, "Invalid"},
		{"GET", "a", "", 404, ""},
		{"GET", "a.json?ns=bank", "", 400, "ns"},
		{"GET", "a.json?auth=x", "", 400, "auth"},
		{"GET", "a.json?access_token=x", "", 400, "access_token"},
		{"GET", "a.json?callback=x", "", 400, "callback"},
		{"GET", "a.json?nonsense=1", "", 400, "unknown parameter"},
		{"GET", ".settings/rules.json", "", 200, `".read": false`},
		{"PUT", ".settings/rules.json", `{"rules":{".read":"auth != null"}}`, 200, "ok"},
		{"GET", "a.json?auth_variable_override=null", "", 403, "Permission denied"},
		{"GET", "a/b/x.json?auth_variable_override={\"uid\":\"ann\"}", "", 200, "9007199254740993"},
		{"GET", ".inspect/databases.json", "", 403, "Permission denied"},
		{"OPTIONS", "a.json", "", 405, ""},
		{"PUT", "big.json", `"` + strings.Repeat("x", 100_000) + `"`, 200, ""},
		{"PUT", "big.json", `"` + strings.Repeat("x", 2<<20) + `"`, 400, "exceeds"},
	} {
		w := s.do(test.method, at+test.path, shop, test.body)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s = %d %.200s, want %d %s", test.method, test.path, w.Code, w.Body, test.code, test.want)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s has the header %s", test.method, test.path, name)
			}
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s %s may be kept: %q", test.method, test.path, got)
		}
	}
	if w := s.do("GET", "/v1/databases/none/data/a.json", credential, ""); w.Code != 404 {
		t.Errorf("data of a database that is not there = %d", w.Code)
	}
}

func TestRequestsOfTheConsoleAreCountedApart(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	shop := signInShop(s)
	if w := s.do("PUT", "/v1/databases/shop/data/a.json", shop, "1"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	s.do("GET", "/console/", "", "")
	_, metrics := s.get("/metrics")
	for _, want := range []string{
		`livetree_requests_total{route="console",status="200",verb="PUT"} 1`,
		`livetree_requests_total{route="console",status="201",verb="POST"} 1`,
		`livetree_requests_total{route="console",status="404",verb="GET"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, `route="data"`) {
		t.Error("a request of the console is counted as one for data")
	}
}

// TestAuthorOfASession looks at who is noted to have written: whoever has opened the session of a
// database with its secret is not the operator.
func TestAuthorOfASession(t *testing.T) {
	t.Parallel()
	s := newShops(t, func(o *admin.Options) { o.MaxCopy = 1 << 20 })
	for _, test := range []struct{ credential, want string }{{credential, "operator"}, {signInShop(s), "secret"}} {
		if w := s.do("PUT", "/v1/databases/shop/data/"+test.want+"/a.json", test.credential, "1"); w.Code != 200 {
			t.Fatal(w.Code)
		}
		copied := fmt.Sprintf(`{"from":"/%s/a","to":"/%s/b"}`, test.want, test.want)
		if w := s.do("POST", "/v1/databases/shop/copy", test.credential, copied); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		w := s.do("GET", "/v1/databases/shop/history?path=/"+test.want, credential, "")
		for _, at := range []string{"a", "b"} {
			if want := fmt.Sprintf(`"who":{"by":%q},"path":"/%s/%s"`, test.want, test.want, at); !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s is not in %s", want, w.Body)
			}
		}
	}
}
