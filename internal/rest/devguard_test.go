package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// TestDevGuard: a server with --dev is used from this machine, and by no web page
// that the browser on it happens to show.
func TestDevGuard(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *rest.Options) {
		o.Dev = true
		o.DevHosts, o.DevOrigins = []string{"devbox.test"}, []string{"https://app.example.com"}
		o.Domain, o.HostMap = "db.test", map[string]string{"shop.test": "shop"}
	}).Config.Handler
	for _, test := range []struct {
		what    string
		host    string
		headers string // name: value, separated by ;
		want    int
	}{
		{"a program", "localhost:9000", "", 200},
		{"a program by an address", "127.0.0.1:9000", "", 200},
		{"Android's emulator", "10.0.2.2:9000", "", 200},
		{"a program by an address of IPv6", "[::1]:9000", "", 200},
		{"no address", "0.0.0.0:9000", "", 403},
		{"no address of IPv6", "[::]:9000", "", 403},
		{"no address, in a longer form", "[::ffff:0.0.0.0]:9000", "", 403},
		{"a name of --dev-host", "DevBox.test:9000", "", 200},
		{"a name of --domain", "app.db.test", "", 200},
		{"a name of --host-map", "shop.test", "", 200},
		{"another name", "attacker.example:9000", "", 403},
		{"a name that begins alike", "localhost.attacker.example", "", 403},
		{"a name that ends alike", "notdb.test", "", 403},
		{"a page of a front-end server", "localhost:9000", "Origin: http://localhost:3000", 200},
		{"a page of a machine beside", "192.168.1.5:9000", "Origin: http://192.168.1.5:5173", 200},
		{"a page of --dev-origin", "localhost:9000", "Origin: https://app.example.com", 200},
		{"a page of that host without TLS", "localhost:9000", "Origin: http://app.example.com", 403},
		{"a page of a stranger", "localhost:9000", "Origin: https://attacker.example", 403},
		{"a page with a name like an address", "localhost:9000", "Origin: https://127.0.0.1.attacker.example", 403},
		{"a page of a public address", "localhost:9000", "Origin: http://8.8.8.8", 403},
		{"a page of nobody", "localhost:9000", "Origin: null", 403},
		{"an extension", "localhost:9000", "Origin: chrome-extension://abc", 403},
		{"a page of the server itself", "devbox.test:9000", "Origin: http://DevBox.test:9000", 200},
		{"a page of the server itself, by a name of --domain", "app.db.test", "Origin: https://app.db.test", 200},
		{"a page of the server itself, by a public address", "8.8.8.8:9000", "Origin: http://8.8.8.8:9000", 200},
		{"a page beside the server, at another port", "devbox.test:9000", "Origin: http://devbox.test:3000", 403},
		{"a page of a stranger by a name that leads here", "attacker.example:9000", "Origin: http://attacker.example:9000", 403},
		{"a page of the server and one of a stranger", "devbox.test:9000", "Origin: http://devbox.test:9000; Origin: https://attacker.example", 403},
		{"a page without a host", "devbox.test:9000", "Origin: http://", 403},
		{"an extension that is called as the server", "devbox.test:9000", "Origin: chrome-extension://devbox.test:9000", 403},
		{"two origins", "localhost:9000", "Origin: http://localhost; Origin: https://attacker.example", 403},
		{"a script tag of a stranger", "localhost:9000", "Sec-Fetch-Site: cross-site; Referer: https://attacker.example/page", 403},
		{"a script tag of a stranger who hides", "localhost:9000", "Sec-Fetch-Site: cross-site", 403},
		{"a script tag of a front-end server", "127.0.0.1:9000", "Sec-Fetch-Site: cross-site; Referer: http://localhost:3000/", 200},
		{"a script tag of the same site", "localhost:9000", "Sec-Fetch-Site: same-site", 200},
		{"an address that was typed", "localhost:9000", "Sec-Fetch-Site: none", 200},
		{"a browser that tells nothing", "192.168.1.5:9000", "User-Agent: Mozilla/5.0 (X11)", 200},
		{"a link on a stranger's page", "192.168.1.5:9000", "User-Agent: Mozilla/5.0 (X11); Referer: http://attacker.example/", 200},
	} {
		for _, method := range []string{"GET", "PUT", "OPTIONS"} {
			for _, target := range []string{"/a.json", "/a.json?access_token=owner", "/.settings/rules.json?access_token=owner"} {
				body := map[bool]string{true: `{"rules":{".read":true,".write":true}}`, false: "1"}[strings.Contains(target, "rules")]
				r := httptest.NewRequest(method, target, strings.NewReader(body))
				r.Host = test.host
				for _, pair := range strings.Split(test.headers, "; ") {
					if name, value, ok := strings.Cut(pair, ": "); ok {
						r.Header.Add(name, value)
					}
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != test.want {
					t.Errorf("%s, %s %s: %d %s, want %d", test.what, method, target, w.Code, w.Body, test.want)
				}
				if w.Code == http.StatusForbidden && w.Header().Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s, %s %s: the page may read the refusal", test.what, method, target)
				}
			}
		}
	}
}

// TestDevGuardOfScripts: a script shows what it holds to the page that loads it, so the
// browser must tell which page that is.
func TestDevGuardOfScripts(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *rest.Options) {
		o.Dev, o.DevOrigins = true, []string{"http://app.example.com"}
	}).Config.Handler
	const browser = "User-Agent: Mozilla/5.0 (X11) Chrome/140; "
	for _, test := range []struct {
		what    string
		headers string
		want    int
	}{
		{"a program", "User-Agent: node", 200},
		{"a program that tells nothing", "", 200},
		{"a page that hides", browser, 403},
		{"a page of a stranger", browser + "Referer: http://attacker.example/", 403},
		{"a page of a public address", browser + "Referer: http://8.8.8.8/", 403},
		{"a page with a Referer that is none", browser + "Referer: attacker", 403},
		{"a page of a machine beside", browser + "Referer: http://192.168.1.5:5173/", 200},
		{"a page of --dev-origin", browser + "Referer: http://app.example.com/page", 200},
		{"a page of this server", browser + "Sec-Fetch-Site: same-origin", 200},
		{"a page of this server without TLS", browser + "Referer: http://192.168.1.5:9000/.lp", 200},
		{"a page of a front-end server", browser + "Sec-Fetch-Site: same-site", 200},
		{"an address that was typed", browser + "Sec-Fetch-Site: none", 200},
		{"a script tag with CORS", browser + "Origin: http://localhost:3000", 200},
		{"a script tag with CORS of a stranger", browser + "Origin: http://attacker.example", 403},
	} {
		for _, target := range []string{"/a.json?callback=f", "/a.json?%63allback=f&print=pretty"} {
			r := httptest.NewRequest("GET", target, nil)
			r.Host = "192.168.1.5:9000"
			for _, pair := range strings.Split(test.headers, "; ") {
				if name, value, ok := strings.Cut(pair, ": "); ok {
					r.Header.Add(name, value)
				}
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != test.want {
				t.Errorf("%s, %s: %d %s, want %d", test.what, target, w.Code, w.Body, test.want)
			}
		}
	}
}
