package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/client"
)

// results returns what a diagnosis found, by the name of the check.
func results(t *testing.T, opts client.Options) map[string]client.Check {
	t.Helper()
	opts.Attempts = 1
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := make(map[string]client.Check)
	for _, check := range c.Diagnose(t.Context()) {
		if check.Result == client.CheckFailed && check.Do == "" {
			t.Errorf("%+v does not say what to do", check)
		}
		if strings.Contains(check.Text+check.Do, secret) {
			t.Errorf("%+v shows the secret", check)
		}
		all[check.Name] = check
	}
	return all
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	later := func(d time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(d) }
	}
	asked := 0
	hesitant := func() time.Time { // each look at the clock takes half a minute
		asked++
		return time.Now().Add(time.Duration(asked-3) * 30 * time.Second)
	}
	well := client.Options{URL: server.url, CA: server.ca, Auth: secret}
	set := func(change func(*client.Options)) client.Options {
		o := well
		change(&o)
		return o
	}
	tests := []struct {
		name          string
		opts          client.Options
		check, result string
	}{
		{"well", well, "address", client.CheckOK},
		{"well", well, "certificate", client.CheckOK},
		{"well", well, "clock", client.CheckOK},
		{"well", well, "database", client.CheckOK},
		{"well", well, "rules", client.CheckOK},
		{"a clock that is late", set(func(o *client.Options) { o.Now = later(-30 * time.Second) }), "clock", client.CheckWarning},
		{"a slow answer", set(func(o *client.Options) { o.Now = hesitant }), "clock", client.CheckOK},
		{"a clock that is wrong", set(func(o *client.Options) { o.Now = later(time.Hour) }), "clock", client.CheckFailed},
		{"an old certificate", set(func(o *client.Options) { o.Now = later(390 * 24 * time.Hour) }), "certificate", client.CheckWarning},
		{"not trusted", set(func(o *client.Options) { o.CA = "" }), "certificate", client.CheckFailed},
		{"nobody there", set(func(o *client.Options) { o.URL = "https://127.0.0.1:1" }), "address", client.CheckFailed},
		{"no secret", set(func(o *client.Options) { o.Auth = "" }), "rules", client.CheckSkipped},
		{"another database", set(func(o *client.Options) { o.Database = "other" }), "database", client.CheckFailed},
		{"no TLS", client.Options{URL: strings.Replace(plainServer(t, http.NotFoundHandler()), "http", "https", 1)}, "certificate", client.CheckFailed},
	}
	for _, test := range tests {
		if got := results(t, test.opts)[test.check]; got.Result != test.result {
			t.Errorf("%s: %s is %+v, want %s", test.name, test.check, got, test.result)
		}
	}
	c := server.client(t)
	if _, err := c.Bytes(t.Context(), client.Request{Method: http.MethodPut, Path: client.RulesPath, Body: strings.NewReader(`{"rules":{".write":true}}`)}); err != nil {
		t.Fatal(err)
	}
	if got := results(t, well)["rules"]; got.Result != client.CheckFailed || !strings.Contains(got.Text, "everybody write everything") {
		t.Errorf("rules that open the root: %+v", got)
	}
}
