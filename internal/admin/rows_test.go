package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

// TestRows: the routes to rows lead to the database that they name, and a download needs its
// token and nothing else.
func TestRows(t *testing.T) {
	s := newShops(t, func(o *admin.Options) { o.MaxCopy = 1 << 20 })
	do := func(method, path, body string, signed bool) (int, string) {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		if signed {
			r.Header.Set("Authorization", "Bearer "+credential)
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const below = "/v1/databases/shop"
	if status, text := do("PUT", below+"/data/a.json", `{"x":1}`, true); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if status, text := do("POST", below+"/copy", `{"from":"/a","to":"/b"}`, true); status != http.StatusOK {
		t.Errorf("a copy is %d %s", status, text)
	}
	if status, text := do("GET", below+"/data/.json?list=true", "", true); status != http.StatusOK || !strings.Contains(text, `{"key":"b","type":"object","value":"{\"x\":1}","children":1}`) {
		t.Errorf("a list is %d %s", status, text)
	}
	if status, text := do("POST", below+"/find", `{"under":"/","text":"X"}`, true); status != http.StatusOK || !strings.Contains(text, `{"path":"/b/x","value":"1"}`) {
		t.Errorf("a search is %d %s", status, text)
	}
	status, text := do("POST", below+"/exports", `{"path":"/b"}`, true)
	var made struct{ URL string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("an export is %d %s", status, text)
	}
	if status, text := do("GET", made.URL, "", false); status != http.StatusOK || text != `{"x":1}` {
		t.Errorf("a download is %d %s", status, text)
	}
	for _, path := range []string{"/watch", "/find", "/copy", "/exports"} {
		if status, _ := do("POST", below+path, "{}", false); status != http.StatusUnauthorized {
			t.Errorf("POST %s without a credential is %d", path, status)
		}
		if status, _ := do("POST", "/v1/databases/none"+path, "{}", true); status != http.StatusNotFound {
			t.Errorf("POST %s of no database is %d", path, status)
		}
	}
}
