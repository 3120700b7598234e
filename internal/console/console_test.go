package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/livetree/livetree/internal/console"
)

func ask(t *testing.T, h http.Handler, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:9001"+path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func newHandler(t *testing.T, opts console.Options) *console.Handler {
	t.Helper()
	h, err := console.New(opts)
	if err != nil {
		t.Skip(err) // built with no_console
	}
	return h
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The headers are written out: one that is changed must be changed here as well.
func TestHeadersOfThePage(t *testing.T) {
	t.Parallel()
	h := newHandler(t, console.Options{})
	for _, path := range []string{"/console/", "/console/db/shop/data/a%2Fb", "/console/assets/none/x.js"} {
		answer := ask(t, h, "GET", path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
				"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"X-Frame-Options":              "DENY",
			"Cache-Control":                "no-store",
			"Set-Cookie":                   "",
			"Access-Control-Allow-Origin":  "",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s has %s: %s, want %s", path, name, got, want)
			}
		}
		permissions := answer.Header.Get("Permissions-Policy")
		for part := range strings.SplitSeq(permissions, ", ") {
			if part != "clipboard-write=(self)" && !strings.HasSuffix(part, "=()") {
				t.Errorf("%s permits %s", path, part)
			}
		}
		if !strings.Contains(permissions, "clipboard-write=(self)") || !strings.Contains(permissions, "camera=()") {
			t.Errorf("%s has Permissions-Policy: %s", path, permissions)
		}
	}
}

func TestEveryPathIsThePageButAssets(t *testing.T) {
	t.Parallel()
	h := newHandler(t, console.Options{})
	first := text(t, ask(t, h, "GET", "/console/").Body)
	for _, path := range []string{"/console/health", "/console/db/a/data/x/y?print=pretty", "/console/assetsx"} {
		answer := ask(t, h, "GET", path)
		if body := text(t, answer.Body); answer.StatusCode != 200 || body != first || answer.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("GET %s = %d %q, want the page", path, answer.StatusCode, body)
		}
	}
	if strings.Contains(first, "/assets/-/") {
		t.Error("the page names its files without their hash")
	}
	hash := hashIn(t, first)
	for path, want := range map[string]int{
		"/console/assets/" + hash + "/style.css":     200,
		"/console/assets/" + hash + "/index.html":    200,
		"/console/assets/" + hash + "/":              404,
		"/console/assets/" + hash + "/none.js":       404,
		"/console/assets/" + hash + "/../style.css":  404,
		"/console/assets/0000000000000000/style.css": 404,
		"/console/assets/-/style.css":                404,
		"/console/assets//style.css":                 404,
		"/console/assets//index.html":                404,
		"/console/assets/":                           404,
	} {
		if got := ask(t, h, "GET", path).StatusCode; got != want {
			t.Errorf("GET %s = %d, want %d", path, got, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if got := ask(t, h, method, "/console/").StatusCode; got != http.StatusMethodNotAllowed {
			t.Errorf("%s /console/ = %d, want 405", method, got)
		}
	}
}

func hashIn(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`/console/assets/([0-9a-f]{16})/`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page names no file by its hash: %s", page)
	}
	return found[1]
}

func TestAssetsAreKeptAndCompressed(t *testing.T) {
	t.Parallel()
	h := newHandler(t, console.Options{})
	path := "/console/assets/" + hashIn(t, text(t, ask(t, h, "GET", "/console/").Body)) + "/index.html"
	plain := text(t, ask(t, h, "GET", path).Body)
	for accept, want := range map[string]string{
		"": "", "br": "", "gzip": "gzip", "gzip, zstd": "zstd", "gzip;q=1.0, zstd;q=0": "gzip", "GZIP; q=0.5": "gzip", "zstd;q=0.000,gzip;q=0": "",
	} {
		answer := ask(t, h, "GET", path, "Accept-Encoding", accept)
		if got := answer.Header.Get("Content-Encoding"); got != want {
			t.Errorf("a client that accepts %q is sent %q, want %q", accept, got, want)
		}
		if got := answer.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("a file may be kept %q", got)
		}
		if got := unpack(t, answer); got != plain {
			t.Errorf("a client that accepts %q is sent %q, want %q", accept, got, plain)
		}
	}
	if answer := ask(t, h, "HEAD", path); answer.ContentLength != int64(len(plain)) || text(t, answer.Body) != "" {
		t.Errorf("HEAD tells %d bytes, want %d", answer.ContentLength, len(plain))
	}
}

func unpack(t *testing.T, answer *http.Response) string {
	t.Helper()
	switch answer.Header.Get("Content-Encoding") {
	case "gzip":
		r, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return text(t, r)
	case "zstd":
		r, err := zstd.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return text(t, r)
	}
	return text(t, answer.Body)
}

func TestCheckoutIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := console.New(console.Options{Dir: dir}); err == nil {
		t.Error("a directory without a page is taken")
	}
	write("index.html", `<script src="/console/assets/-/app.js">`)
	write("app.js", "one")
	write("app.test.js", "a test")
	write("secret.txt", "not a file of the page")
	h, err := console.New(console.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if body := text(t, ask(t, h, "GET", "/console/x").Body); !strings.Contains(body, "/assets/-/app.js") {
		t.Errorf("the page is %q", body)
	}
	for _, want := range []string{"one", "two"} {
		write("app.js", want)
		answer := ask(t, h, "GET", "/console/assets/-/app.js")
		if body := text(t, answer.Body); body != want || answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("app.js = %q, kept %q, want %q", body, answer.Header.Get("Cache-Control"), want)
		}
	}
	for _, name := range []string{"app.test.js", "secret.txt", "..", "../x.js", "/etc/x.js", "none.js"} {
		if got := ask(t, h, "GET", "/console/assets/-/"+name).StatusCode; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", name, got)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "PRODUCTION,red": "PRODUCTION,red", "test": "test,grey", " a b , Blue ": "a b,blue",
	} {
		l, err := console.ParseLabel(given)
		if err != nil || l.String() != want {
			t.Errorf("ParseLabel(%q) = %q, %v, want %q", given, l, err, want)
		}
	}
	for _, bad := range []string{",red", "a,pink", "a,red,blue", "a\x00", "a\u202eb,red", strings.Repeat("x", 41), "\xff", " ,red"} {
		if l, err := console.ParseLabel(bad); err == nil {
			t.Errorf("ParseLabel(%q) = %q, want an error", bad, l)
		}
	}
}
