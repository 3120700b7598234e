package admin_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/session"
)

func TestWhatIsDoneIsAudited(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	s := newShops(t, func(o *admin.Options) { o.Audit = admin.NewAudit(file) })
	signed := s.signIn(`{"credential":"` + credential + `"}`)
	s.advance(time.Second)
	shop := signInShop(s)
	for _, request := range [][3]string{
		{"POST", "/v1/databases/shop/secrets", `{"value":"another-secret-of-the-shop"}`},
		{"GET", "/v1/databases/shop/secrets?show=true", ""},
		{"POST", "/v1/databases/shop/tokens", `{"uid":"ann"}`},
		{"DELETE", "/v1/databases/shop/secrets/" + admin.SecretID(shopSecret), ""},
	} {
		s.advance(time.Second)
		if w := s.do(request[0], request[1], signed.Session, request[2]); w.Code >= 300 {
			t.Fatalf("%s %s = %d %s", request[0], request[1], w.Code, w.Body)
		}
	}
	s.do("DELETE", "/v1/sessions/current", signed.Session, "")
	var list struct{ Entries []admin.Audited }
	s.ask("GET", "/v1/audit", "", &list)
	var got []string
	ids := map[string]bool{}
	for _, e := range list.Entries {
		got = append(got, fmt.Sprint(e.Action, " ", e.Database, " ", e.Scope))
		ids[e.Session] = true
	}
	want := "signed out  operator|removed a secret shop operator|made a token shop operator|looked at a secret shop operator|" +
		"looked at a secret shop operator|added a secret shop operator|signed in shop database|signed in  operator"
	if text := strings.Join(got, "|"); text != want || len(ids) != 2 || ids[""] {
		t.Errorf("the audit list is\n%s\nwant\n%s\nwith two sessions: %v", text, want, ids)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{credential, signed.Session, shop, shopSecret, "another-secret"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the audit list shows %s", hidden)
		}
	}
}

func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	audit := admin.NewAudit(file)
	audit.SetMaxBytes(50_000)
	for i := range 2000 {
		if err := audit.Add(admin.Audited{Action: "counted", Scope: session.Operator, Subject: fmt.Sprint(i) + strings.Repeat("x", i%300)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{file, file + ".1"} {
		if info, err := os.Stat(name); err != nil || info.Size() > 50_100 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0); err == nil { // a line that a crash has cut
		_, _ = f.WriteString(`{"action":"cut`)
		_ = f.Close()
	}
	list, err := audit.Newest()
	if err != nil || len(list) == 0 || len(list) > 500 || !strings.HasPrefix(list[0].Subject, "1999x") {
		t.Errorf("the newest of %d entries is %+v, %v", len(list), list[0], err)
	}
}

// TestOthersDoNotWashTheAuditList: what holders of a database's secret do pushes out nothing of
// the operator's, on disk or in what is shown.
func TestOthersDoNotWashTheAuditList(t *testing.T) {
	t.Parallel()
	audit := admin.NewAudit(filepath.Join(t.TempDir(), "audit.jsonl"))
	audit.SetMaxBytes(20_000)
	at := time.Unix(1_700_000_000, 0).UTC()
	add := func(scope session.Scope, action string) {
		at = at.Add(time.Second)
		if err := audit.Add(admin.Audited{Time: at, Action: action, Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	add(session.Operator, "dropped a database")
	for range 1000 {
		add(session.Database, "signed in")
	}
	add("", "set the rules") // with the secret, on the port of the data
	list, err := audit.Newest()
	if err != nil {
		t.Fatal(err)
	}
	if last := list[len(list)-1]; last.Action != "dropped a database" || list[0].Action != "set the rules" || len(list) > 500 {
		t.Errorf("of %d entries the newest is %+v and the oldest %+v", len(list), list[0], last)
	}
	for range 400 {
		add(session.Operator, "looked at a secret")
	}
	if list, err = audit.Newest(); err != nil || list[0].Action != "looked at a secret" {
		t.Fatalf("the newest is %+v, %v", list[0], err)
	}
	count := map[session.Scope]int{}
	for _, e := range list {
		count[e.Scope]++
	}
	if count[session.Operator] < 200 || count[session.Database] < 90 {
		t.Errorf("of the operator's and others' entries there are %v", count)
	}
}

// TestDatabasesDoNotWashEachOthersAudit: what the holder of one secret does pushes out nothing
// that was done with another, on disk or in what is shown, as long as each has room.
func TestDatabasesDoNotWashEachOthersAudit(t *testing.T) {
	t.Parallel()
	audit := admin.NewAudit(filepath.Join(t.TempDir(), "audit.jsonl"))
	audit.SetMaxBytes(30_000)
	at := time.Unix(1_700_000_000, 0).UTC()
	add := func(database, action string) {
		at = at.Add(time.Second)
		if err := audit.Add(admin.Audited{Time: at, Action: action, Database: database, Scope: session.Database}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		add(fmt.Sprint("quiet", i%5), "made a token")
	}
	for i := range 5000 {
		add(fmt.Sprint("loud", i%2), "signed in")
	}
	list, err := audit.Newest()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, e := range list {
		count[e.Database]++
		if i > 0 && e.Time.After(list[i-1].Time) {
			t.Fatalf("entry %d is newer than the one before it", i)
		}
	}
	for i := range 5 {
		if n := count[fmt.Sprint("quiet", i)]; n != 4 {
			t.Errorf("of the database quiet%d there are %d entries, want 4", i, n)
		}
	}
	if len(list) > 500 || count["loud0"] < 50 || count["loud1"] < 50 || list[0].Database != "loud1" {
		t.Errorf("there are %d entries: %v, the newest is %+v", len(list), count, list[0])
	}
}

// TestAuditShares compares what stays with what must: never more than the room, never less of a
// database that needs no more than its share, and always the newest.
func TestAuditShares(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		databases, n, room := 1+r.IntN(8), r.IntN(60), 1+r.IntN(40)
		var list []admin.Audited
		total := map[string]int{}
		for i := range n {
			name := fmt.Sprint(r.IntN(databases) * r.IntN(2))
			total[name]++
			list = append(list, admin.Audited{Database: name, Subject: fmt.Sprint(i)})
		}
		kept := map[string]int{}
		got := admin.ShareOut(list, int64(room))
		for _, e := range got {
			kept[e.Database]++
		}
		if len(got) > room || len(got) < min(n, room)-len(total) {
			t.Fatalf("seed %d: %d of %d entries stay in a room for %d", seed, len(got), n, room)
		}
		left := map[string]int{}
		for _, e := range list {
			if left[e.Database]++; left[e.Database] <= total[e.Database]-kept[e.Database] {
				continue
			}
			if len(got) == 0 || got[0].Subject != e.Subject {
				t.Fatalf("seed %d: entry %s of %s does not stay, of %v in %d", seed, e.Subject, e.Database, total, room)
			}
			got = got[1:]
		}
		if len(total) > room {
			continue
		}
		for name, n := range total {
			if kept[name] < min(n, room/len(total)) {
				t.Fatalf("seed %d: of %v in a room for %d there stay %v", seed, total, room, kept)
			}
		}
	}
}

func TestTokensAreThoseOfTheirUser(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	s.deploy(`{"rules":{"$uid":{".read":"auth.uid == $uid && auth.level == 3"}}}`)
	var made struct{ Token, Expires string }
	s.ask("POST", "/v1/databases/shop/tokens", `{"uid":"ann","claims":{"level":3},"expires":60}`, &made)
	read := func(path string) int {
		w := httptest.NewRecorder()
		s.front.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path+".json?ns=shop&auth="+made.Token, nil))
		return w.Code
	}
	if mine, others := read("/ann"), read("/eve"); mine != 200 || others == 200 || made.Expires != "2023-11-14T22:14:20Z" {
		t.Errorf("a token until %s reads its own %d, another's %d", made.Expires, mine, others)
	}
	for _, bad := range []string{`{}`, `{"uid":"ann","expires":86401}`, `{"uid":"ann","expires":-1}`, `{"uid":7}`, `{"claims":{"level":3}}`} {
		if w := s.do("POST", "/v1/databases/shop/tokens", credential, bad); w.Code != 400 {
			t.Errorf("a token of %s is answered %d %s", bad, w.Code, w.Body)
		}
	}
	if w := s.do("POST", "/v1/databases/shop/tokens", credential, `{"admin":true}`); w.Code != 201 {
		t.Errorf("a token of an administrator is answered %d %s", w.Code, w.Body)
	}
}
