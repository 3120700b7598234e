package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/livetree/livetree/internal/admin"
)

// adminEndpoints are all that need the credential, and do no harm.
var adminEndpoints = []struct {
	method, path, body string
	status             int
}{
	{"GET", "/metrics", "", 200},
	{"GET", "/v1/status", "", 200},
	{"GET", "/v1/databases", "", 200},
	{"GET", "/v1/databases/default", "", 200},
	{"GET", "/v1/databases/nothing", "", 404},
	{"POST", "/v1/databases", `{"name":"Not a name"}`, 400},
	{"POST", "/v1/databases", `{"name":"a","more":1}`, 400},
	{"POST", "/v1/databases", `{"name":"default"}`, 409},
	{"POST", "/v1/databases", `{"name":"` + strings.Repeat("a", 70<<10) + `"}`, 413},
	{"DELETE", "/v1/databases/nothing", "", 404},
	{"GET", "/v1/databases/default/secrets", "", 200},
	{"GET", "/v1/databases/nothing/secrets", "", 404},
	{"POST", "/v1/databases/default/secrets", `{"value":"short"}`, 400},
	{"DELETE", "/v1/databases/default/secrets/00000000", "", 404},
	{"GET", "/v1/operations?for=1ms", "", 200},
	{"GET", "/v1/operations?for=1h", "", 400},
	{"GET", "/v1/operations?lines=many", "", 400},
	{"POST", "/v1/backup", `{}`, 400},
	{"POST", "/v1/verified", `{}`, 400},
	{"POST", "/v1/verified", `{"epoch":"0123456789abcdef"}`, 409},
	{"GET", "/debug/pprof/", "", 200},
	{"GET", "/debug/pprof/goroutine?debug=1", "", 200},
	{"GET", "/debug/pprof/heap", "", 200},
	{"GET", "/debug/pprof/profile?seconds=1", "", 200},
	{"GET", "/debug/pprof/trace?seconds=1", "", 200},
	{"GET", "/debug/pprof/symbol", "", 200},
	{"GET", "/debug/pprof/cmdline", "", 404},
	{"GET", "/none", "", 404},
	{"GET", "/nothing", "", 404},
}

func TestAdminNeedsItsCredential(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	if len(m.token) != 40 {
		t.Errorf("the credential has %d characters, want 40", len(m.token))
	}
	secret := m.file("secrets", "default")
	for _, e := range adminEndpoints {
		if status, text := m.admin(e.method, e.path, e.body); status != e.status {
			t.Errorf("%s %s = %d %.200s, want %d", e.method, e.path, status, text, e.status)
		}
		query := "?"
		if strings.Contains(e.path, "?") {
			query = "&"
		}
		for name, request := range map[string][2]string{
			"no credential":    {"", ""},
			"the app secret":   {secret, ""},
			"a wrong one":      {m.token[:39] + "!", ""},
			"a part":           {m.token[:39], ""},
			"one in the query": {"", query + "auth=" + m.token + "&access_token=" + m.token},
		} {
			status, text := m.send(e.method, m.url+e.path+request[1], request[0], e.body)
			if status != http.StatusUnauthorized || !json.Valid([]byte(text)) {
				t.Errorf("%s %s with %s = %d %.100s, want 401 as JSON", e.method, e.path, name, status, text)
			}
		}
		if status, _ := m.send(e.method, m.public+e.path, m.token, e.body); status < 400 {
			t.Errorf("%s %s on the public port = %d, want an error", e.method, e.path, status)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if status, text := m.send("GET", m.url+path, "", ""); status != 200 || !json.Valid([]byte(text)) {
			t.Errorf("GET %s without the credential = %d %s, want 200", path, status, text)
		}
		if status, _ := m.send("GET", m.public+path, "", ""); status != 404 {
			t.Errorf("GET %s on the public port = %d, want 404", path, status)
		}
	}
}

func TestAdminFilesArePrivate(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	for name, mode := range map[string]os.FileMode{"": 0o700, admin.TokenFile: 0o600, admin.AddrFile: 0o600} {
		info, err := os.Stat(filepath.Join(m.data, admin.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("admin/%s has the mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
	m.stop()
	if _, err := os.Stat(filepath.Join(m.data, admin.Dir, admin.AddrFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("admin/addr after the server has stopped: %v, want that it is gone", err)
	}
	again := startManaged(t, m.data, nil)
	if again.token != m.token {
		t.Error("the credential is another after a restart")
	}
}

func TestAdminKnowsItsHosts(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"localhost": 200, "localhost:1": 200, "127.0.0.1": 200, "[::1]:9": 200, "10.1.2.3": 200, machine: 200,
		"evil.example": 421, "localhost.evil.example:9001": 421, "": 400,
	} {
		r, err := http.NewRequest("GET", m.url+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = host; host == "" {
			continue // net/http would fill it in
		}
		answer, err := m.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("Host %q = %d, want %d", host, answer.StatusCode, want)
		}
	}
}

// No test runs beside TestAdminListenerLeavesNothingBehind, because of verifyNone.
func TestAdminListenerLeavesNothingBehind(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	m := startManaged(t, t.TempDir(), nil)
	ended := make(chan struct{})
	go func() { // a request that would take its time
		defer close(ended)
		r, err := http.NewRequest("GET", m.url+"/v1/operations?for=5m", nil)
		if err != nil {
			return
		}
		r.Header.Set("Authorization", "Bearer "+m.token)
		if answer, err := m.client.Do(r); err == nil {
			answer.Body.Close()
		}
	}()
	wait(t, "the recording to begin", func() bool { return m.recordings() > 0 })
	m.stop()
	<-ended
	m.client.CloseIdleConnections()
	verifyNone(t, ignore)
}

// verifyNone waits until there are no goroutines but those to ignore. By itself
// goleak waits for less than half a second. The goroutines of tests beside this one count,
// and there may always be some while the package is tested: none may run in parallel.
func verifyNone(t *testing.T, ignore goleak.Option) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find(ignore)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAdminListenerCanBeOff(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.AdminAddr = "" })
	if _, err := os.Stat(filepath.Join(m.data, admin.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory admin without a listener: %v, want that there is none", err)
	}
}

// TestAdminListenerForOthersHasTLS: the credential never travels in the clear.
func TestAdminListenerForOthersHasTLS(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.AdminAddr = "0.0.0.0:0" })
	if !strings.HasPrefix(m.url, "https://localhost:") {
		t.Fatalf("the admin listener is at %s, want https", m.url)
	}
	m.want(200, "GET", "/v1/databases", "")
	r, err := http.NewRequest("GET", m.url+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "livetree.example.com" // as a scraper elsewhere calls it
	answer, err := m.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("a name of the operator's = %d, want 200", answer.StatusCode)
	}
	if status, text := m.send("GET", strings.Replace(m.url, "https:", "http:", 1)+"/livez", "", ""); status != 400 {
		t.Errorf("plain HTTP = %d %s, want 400", status, text)
	}
}

func TestDatabasesOfTheOperator(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	var made struct {
		File string `json:"secret_file"`
	}
	if err := json.Unmarshal([]byte(m.want(201, "POST", "/v1/databases", `{"name":"shop"}`)), &made); err != nil {
		t.Fatal(err)
	}
	secret := m.file("secrets", "shop")
	if made.File != filepath.Join(m.data, "secrets", "shop") {
		t.Errorf("the secret is said to be in %s", made.File)
	}
	m.wantData(200, "PUT", "/a.json?ns=shop", secret, `{"b":1}`)
	var list struct{ Databases []admin.Database }
	if err := json.Unmarshal([]byte(m.want(200, "GET", "/v1/databases", "")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Databases) != 2 || list.Databases[0].Name != "default" || list.Databases[1].Name != "shop" || list.Databases[1].Position == 0 {
		t.Errorf("the databases are %+v, want default and shop with its commits", list.Databases)
	}
	var shop admin.Database
	if err := json.Unmarshal([]byte(m.want(200, "GET", "/v1/databases/shop", "")), &shop); err != nil {
		t.Fatal(err)
	}
	if shop.Secrets == nil || *shop.Secrets != 1 || shop.Open == nil || *shop.Open {
		t.Errorf("shop is %+v, want one secret and closed rules", shop)
	}
	m.want(200, "DELETE", "/v1/databases/shop", "")
	m.wantData(404, "GET", "/a.json?ns=shop", secret, "")
	if _, err := os.Stat(made.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the secret of a dropped database: %v, want that it is gone", err)
	}
	m.want(201, "POST", "/v1/databases", `{"name":"shop"}`)
	m.wantData(401, "GET", "/a.json?ns=shop", secret, "")
	m.wantData(200, "GET", "/a.json?ns=shop", m.file("secrets", "shop"), "")
}

func TestSecretsOfTheOperator(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	const path = "/v1/databases/default/secrets"
	first, second := m.file("secrets", "default"), strings.Repeat("second", 7)
	m.want(409, "DELETE", path+"/"+admin.SecretID(first), "")
	text := m.want(201, "POST", path, `{"value":"`+second+`"}`)
	if strings.Contains(text, second) || !strings.Contains(text, admin.SecretID(second)) {
		t.Errorf("adding a secret is answered %s, want its id alone", text)
	}
	m.want(409, "POST", path, `{"value":"`+second+`"}`)
	for _, unfit := range []string{`with a space in it`, `\u0000\u0001 of a binary file`, `bytes\ufffdthat\ufffdwere\ufffdnot\ufffdUTF-8`, `a\u00a0space\u00a0of\u00a0another\u00a0kind`, `short`} {
		m.want(400, "POST", path, `{"value":"`+unfit+`"}`)
	}
	for _, secret := range []string{first, second} {
		m.wantData(200, "GET", "/.json", secret, "")
	}
	m.want(200, "DELETE", path+"/"+admin.SecretID(first), "")
	m.wantData(401, "GET", "/.json", first, "") // at once
	m.wantData(200, "GET", "/.json", second, "")
	if got := m.file("secrets", "default"); got != second {
		t.Error("the file of secrets does not hold the one that is left")
	}
	if text := m.want(200, "GET", path, ""); strings.Contains(text, second) {
		t.Errorf("the list shows the secret: %s", text)
	}
	if text := m.want(200, "GET", path+"?show=true", ""); !strings.Contains(text, second) {
		t.Errorf("the list does not show the secret that was asked for: %s", text)
	}
	m.stop()
	m = startManaged(t, m.data, nil)
	m.wantData(401, "GET", "/.json", first, "")
	m.wantData(200, "GET", "/.json", second, "")
	m.want(200, "DELETE", path+"/"+admin.SecretID(second)+"?force=true", "")
	m.wantData(401, "GET", "/.json", second, "")
	drawn := m.want(201, "POST", path, `{}`)
	if secret := m.file("secrets", "default"); !strings.Contains(drawn, admin.SecretID(secret)) || len(secret) != 40 {
		t.Errorf("a drawn secret has %d characters and the answer %s", len(secret), drawn)
	} else {
		m.wantData(200, "GET", "/.json", secret, "")
	}
}

func TestBackupOfTheOperator(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	target := filepath.Join(t.TempDir(), "backup")
	request, err := json.Marshal(map[string]string{"target": target})
	if err != nil {
		t.Fatal(err)
	}
	if page := m.want(200, "GET", "/metrics", ""); !strings.Contains(page, "livetree_restore_verified_age_seconds +Inf\n") {
		t.Error("restore_verified_age_seconds is not infinite before a backup was verified")
	}
	if page := m.want(200, "GET", "/metrics", ""); !strings.Contains(page, "livetree_backup_age_seconds +Inf\n") {
		t.Error("backup_age_seconds is not infinite before the first backup")
	}
	m.want(200, "POST", "/v1/backup", string(request))
	if files, err := os.ReadDir(target); err != nil || len(files) == 0 {
		t.Errorf("the backup has the files %v, %v", files, err)
	}
	if page := m.want(200, "GET", "/metrics", ""); strings.Contains(page, "livetree_backup_age_seconds +Inf\n") {
		t.Error("backup_age_seconds is infinite after a backup")
	}
	if status, text := m.admin("POST", "/v1/backup", string(request)); status < 400 || !strings.Contains(text, "error") {
		t.Errorf("a backup over another = %d %s, want an error", status, text)
	}
}

// TestOperationsAreRecorded: busy paths, slow requests, denied requests and
// queries without an index are seen by whoever records, and only then.
func TestOperationsAreRecorded(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	secret := m.file("secrets", "default")
	m.wantData(200, "PUT", "/before.json", secret, `1`)
	var report admin.Report
	if err := json.Unmarshal([]byte(m.record(func() {
		for i := range 20 {
			m.wantData(200, "PUT", "/busy/path.json", secret, fmt.Sprint(i))
		}
		m.wantData(200, "POST", "/list.json", secret, `{"n":1}`)
		m.wantData(403, "GET", "/denied.json", "", "")
		m.wantData(400, "GET", "/list.json?orderBy="+url.QueryEscape(`"n"`)+"&limitToFirst=1", secret, "")
	})), &report); err != nil {
		t.Error(err)
	}
	if report.Requests != 23 || report.Statuses[200] != 21 || report.Latency["p50"] <= 0 {
		t.Errorf("the report has %d requests, %v, latency %v", report.Requests, report.Statuses, report.Latency)
	}
	if len(report.Busiest) == 0 || report.Busiest[0].Path != "/busy/path" || report.Busiest[0].Count != 20 || report.Busiest[0].Database != "default" {
		t.Errorf("the busiest paths are %+v, want /busy/path first", report.Busiest)
	}
	if len(report.Slowest) != 23 {
		t.Errorf("there are %d slowest requests, want all 23", len(report.Slowest))
	}
	if len(report.Denied) != 1 || report.Denied[0].Path != "/denied" {
		t.Errorf("the denied requests are %+v, want that of /denied", report.Denied)
	}
	if len(report.Unindexed) != 1 || report.Unindexed[0].Path != "/list" || report.Unindexed[0].Index != "n" {
		t.Errorf("the queries without an index are %+v, want that of /list by n", report.Unindexed)
	}
}

// record returns what is recorded while requests are made. They are made again, with
// more time, if the recording has ended before them.
func (m *managed) record(requests func()) string {
	m.t.Helper()
	for span := 2 * time.Second; ; span *= 3 {
		recorded := make(chan string, 1)
		go func() {
			defer close(recorded) // also when the request has failed
			_, text := m.admin("GET", fmt.Sprintf("/v1/operations?for=%v&lines=50", span), "")
			recorded <- text
		}()
		wait(m.t, "the recording to begin", func() bool { return m.recordings() > 0 || len(recorded) > 0 || m.t.Failed() })
		requests()
		if isWhole := m.recordings() > 0; isWhole || m.t.Failed() {
			return <-recorded
		}
		<-recorded
	}
}

// recordings is how many are recording.
func (m *managed) recordings() int {
	text := m.want(200, "GET", "/metrics", "")
	_, value, _ := strings.Cut(text, "\nlivetree_recordings ")
	var n int
	if _, err := fmt.Sscan(value, &n); err != nil {
		m.t.Fatalf("livetree_recordings: %v", err)
	}
	return n
}

// TestMetricsOfAServerAreDocumented looks at the page of a whole server; what a
// page can hold is compared with the manual by the package admin.
func TestMetricsOfAServerAreDocumented(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	m.wantData(200, "PUT", "/a.json", m.file("secrets", "default"), `1`)
	m.wantData(403, "GET", "/a.json", "", "")
	m.wantData(401, "GET", "/a.json", "wrong", "")
	manual, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	page := m.want(200, "GET", "/metrics", "")
	types := 0
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			types++
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if !strings.Contains(string(manual), "| `"+name+"` | "+kind+" |") {
				t.Errorf("docs/metrics.md does not list %s, a %s", name, kind)
			}
		}
	}
	if types < 60 {
		t.Errorf("the page has %d metrics: are they still found?", types)
	}
	for _, sample := range []string{
		`livetree_requests_total{route="data",status="200",verb="PUT"} 1`,
		`livetree_requests_total{route="data",status="403",verb="GET"} 1`,
		`livetree_requests_total{route="data",status="401",verb="GET"} 1`,
		`livetree_rules_denied_total{access="read"} 1`,
		`livetree_auth_failed_total{reason="malformed"} 1`,
		`livetree_writes_total{outcome="committed"} 1`,
		`livetree_rejected_total{reason="connections"} 0`,
		`livetree_rejected_total{reason="address"} 0`,
		`livetree_rejected_total{reason="idle"} 0`,
		`livetree_panics_total 0`,
		`livetree_info{version="v0.0.0-test"} 1`,
	} {
		if !strings.Contains(page, "\n"+sample+"\n") {
			t.Errorf("the page does not say %s", sample)
		}
	}
}

// TestStreamsAreCounted while they are open, and by why they ended.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), nil)
	r, err := http.NewRequest("GET", m.public+"/a.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+m.file("secrets", "default"))
	answer, err := m.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := answer.Body.Read(make([]byte, 1)); err != nil { // the first event is coming
		t.Fatal(err)
	}
	if page := m.want(200, "GET", "/metrics", ""); !strings.Contains(page, "\nlivetree_streams 1\n") {
		t.Error("livetree_streams is not 1 while a stream is open")
	}
	answer.Body.Close()
	wait(t, "the stream to end", func() bool {
		page := m.want(200, "GET", "/metrics", "")
		return strings.Contains(page, "\nlivetree_streams 0\n") && strings.Contains(page, "\nlivetree_streams_closed_total{reason=")
	})
}
