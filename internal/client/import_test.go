package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/livetree/livetree/internal/client"
)

// file writes a file into a directory of the test.
func file(t testing.TB, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll([]byte(text), nil)
}

// rooms is a tree that takes many requests of 1 KiB, in the form and order in which
// it is exported.
func rooms(n int) string {
	var b strings.Builder
	b.WriteString(`{"rooms":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"room%06d":{"seats":%d,"topic":"%s","who":{"0":"ann","1":"ben"}}`, i, i, strings.Repeat("t", i%40))
	}
	b.WriteString(`},"version":{".value":3,".priority":"p"}}`)
	return b.String()
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	c := startServer(t, "127.0.0.1:0").client(t)
	want := rooms(300)
	for name, text := range map[string][]byte{"plain.json": []byte(want), "packed.json.gz": gzipped(t, want), "packed.json.zst": zstandard(t, want)} {
		source := file(t, name, text)
		for _, portion := range []int{1 << 10, 1 << 20} {
			put(t, c, "old", `{"a":{"b":1}}`)
			report, err := c.Import(t.Context(), client.Import{File: source, Path: "old/a", Mode: client.ModeReplace, RequestBytes: portion})
			if err != nil {
				t.Fatalf("import %s: %v", name, err)
			}
			if got := exported(t, c, "old/a"); got != want {
				t.Errorf("%s in requests of %d bytes: exported %.300s…, want %.300s…", name, portion, got, want)
			}
			if portion == 1<<20 && report.Requests != 1 || portion == 1<<10 && report.Requests < 10 {
				t.Errorf("%s: %d requests of %d bytes", name, report.Requests, portion)
			}
			if _, err := os.Stat(source + client.JournalSuffix); err == nil {
				t.Errorf("%s: the journal stays after the end", name)
			}
		}
	}
	for _, name := range []string{"plain.json", "packed.json.gz", "packed.json.zst"} {
		target := filepath.Join(t.TempDir(), name)
		if n, err := c.Export(t.Context(), client.Export{Path: "old/a", File: target}); err != nil || n != int64(len(want)) {
			t.Fatalf("export %s: %d bytes, %v", name, n, err)
		}
		f, err := os.Open(target)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		plain, err := client.Decompress(f)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(plain); err != nil || string(got) != want {
			t.Errorf("%s holds %.100s…, %v", name, got, err)
		}
		if _, err := os.Stat(target + ".tmp"); err == nil {
			t.Errorf("%s.tmp stays", name)
		}
	}
}

func TestImportModes(t *testing.T) {
	t.Parallel()
	c := startServer(t, "127.0.0.1:0").client(t)
	const old, text = `{"a":{"x":1,"y":2},"c":true}`, `{"a":{"y":{"z":5},"n":null,".priority":7},"b":["p",null,"q"],"e":{}}`
	tests := []struct{ mode, want string }{
		{client.ModeMerge, `{"a":{".priority":7,"x":1,"y":{"z":5}},"b":{"0":"p","2":"q"},"c":true}`},
		{client.ModeReplace, `{"a":{".priority":7,"y":{"z":5}},"b":{"0":"p","2":"q"}}`},
	}
	for _, test := range tests {
		for _, portion := range []int{8, 1 << 20} {
			put(t, c, "/", old)
			_, err := c.Import(t.Context(), client.Import{File: file(t, "f.json", []byte(text)), Mode: test.mode, RequestBytes: portion})
			if got := exported(t, c, "/"); err != nil || got != test.want {
				t.Errorf("--%s in requests of %d bytes: %v, %s, want %s", test.mode, portion, err, got, test.want)
			}
		}
	}
	_, err := c.Import(t.Context(), client.Import{File: file(t, "f.json", []byte(text)), Mode: client.ModeFill})
	if _, ok := errors.AsType[*client.UsageError](err); !ok || !strings.Contains(err.Error(), "--merge") {
		t.Errorf("an import where there is data: %v, want to be asked how", err)
	}
	asked := errors.New("no")
	if _, err := c.Import(t.Context(), client.Import{File: file(t, "f.json", []byte(text)), Mode: client.ModeReplace, Confirm: func() error { return asked }}); !errors.Is(err, asked) {
		t.Errorf("an import that is not confirmed: %v", err)
	}
	if got := exported(t, c, "/"); got != tests[1].want {
		t.Errorf("after imports that were refused: %s", got)
	}
	put(t, c, "/", "null")
	if _, err := c.Import(t.Context(), client.Import{Input: strings.NewReader(text), Mode: client.ModeFill}); err != nil {
		t.Errorf("an import of the standard input: %v", err)
	}
	if got := exported(t, c, "/"); got != tests[1].want {
		t.Errorf("after an import of the standard input: %s", got)
	}
}

// TestImportOfBadFiles: nothing is written.
func TestImportOfBadFiles(t *testing.T) {
	t.Parallel()
	c := startServer(t, "127.0.0.1:0").client(t)
	text := rooms(100)
	packed := gzipped(t, text)
	tests := []struct {
		name string
		text []byte
		want string
	}{
		{"empty.json", nil, "empty.json:1:1: there is no JSON text"},
		{"cut.json", []byte(text[:len(text)-10]), "it was cut off"},
		{"cut.json.gz", packed[:len(packed)-20], "cut.json.gz: the compressed file is damaged or cut off: unexpected EOF"},
		{"bad.json", []byte("{\"a\":1,\n\"b$c\":2,\n\"d#e\":3}"), `bad.json:2:1: invalid child name: "b$c" holds "$" (and 1 more`},
		{"text.json", []byte("hello"), "text.json:1:1: not valid JSON"},
		{"gzip.json", []byte("\x1f\x8bnot really"), "damaged"},
	}
	for _, test := range tests {
		source := file(t, test.name, test.text)
		_, err := c.Import(t.Context(), client.Import{File: source, Mode: client.ModeFill, RequestBytes: 1 << 10})
		if err == nil || !strings.Contains(err.Error(), test.want) || client.ExitCode(err) != client.ExitData {
			t.Errorf("%s: %v (exit %d), want %q", test.name, err, client.ExitCode(err), test.want)
		}
		if got := exported(t, c, "/"); got != "null" {
			t.Errorf("%s left %.100s", test.name, got)
		}
	}
	for _, name := range []string{t.TempDir(), "nowhere.json"} {
		if _, err := c.Import(t.Context(), client.Import{File: name, Mode: client.ModeFill}); client.ExitCode(err) != client.ExitFile {
			t.Errorf("import %s: %v, want exit %d", name, err, client.ExitFile)
		}
	}
}

// A flaky proxy forwards requests to a server until it has let a number through.
type flaky struct {
	proxy *httputil.ReverseProxy
	left  atomic.Int64
	after func()
	// first is a text of the first portion of an import, "" if that does not matter. No other is let through before it is answered.
	first    string
	answered chan struct{}
	answer   sync.Once // closes answered

	mu   sync.Mutex
	sent map[string]bool // requests that came since heal, by their text
}

// heal lets all requests through from now on.
func (f *flaky) heal() {
	f.mu.Lock()
	f.sent = make(map[string]bool)
	f.mu.Unlock()
	f.left.Store(1 << 30)
}

// distinct returns how many different requests came since heal. One that was on its way when its sender was
// interrupted can come after heal, before or beside the same request of who goes on.
func (f *flaky) distinct() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.sent))
}

// note reads a request whole, remembers it, and returns its body.
func (f *flaky) note(r *http.Request) []byte {
	text, err := io.ReadAll(r.Body)
	if err != nil { // its sender has gone
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent != nil {
		f.sent[r.Method+" "+r.URL.String()+"\n"+string(text)] = true
	}
	return text
}

// await waits for the answer to the first portion, if this is another.
func (f *flaky) await(r *http.Request) {
	select {
	case <-f.answered:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if left := f.left.Add(-1); left < 0 {
		if left == -1 && f.after != nil {
			f.after()
		}
		panic(http.ErrAbortHandler) // as a server that dies
	}
	switch text := f.note(r); {
	case f.first == "" || r.Method != http.MethodPatch:
	case bytes.Contains(text, []byte(f.first)):
		defer f.answer.Do(func() { close(f.answered) })
	default:
		f.await(r)
	}
	f.proxy.ServeHTTP(w, r)
}

func newFlaky(t *testing.T, i *instance, requests int64) *flaky {
	t.Helper()
	target, err := url.Parse(i.url)
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{proxy: httputil.NewSingleHostReverseProxy(target), answered: make(chan struct{})}
	f.proxy.Transport = transportTo(t, i)
	// Who loses the server loses its client, which tries again: after an answer of 502 it would not.
	f.proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	f.left.Store(requests)
	return f
}

// TestImportGoesOn interrupts imports in the middle: by a server that dies, and by
// the user. The same call goes on and does not begin again.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	direct := server.client(t)
	want := rooms(1000)
	for _, interrupted := range []bool{false, true} {
		put(t, direct, "/", `{"old":1}`)
		source := file(t, "rooms.json", []byte(want))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broken := newFlaky(t, server, 20)
		broken.first = "room000000" // what is written is counted from the first portion on
		if interrupted {
			broken.after = cancel
		}
		opts := client.Import{File: source, Path: "/", Mode: client.ModeReplace, RequestBytes: 1 << 10}
		front := plainServer(t, broken)
		c := clientOf(t, front)
		_, err := c.Import(ctx, opts)
		wantCode := client.ExitUnavailable
		if interrupted {
			wantCode = client.ExitInterrupted
		}
		if err == nil || !strings.Contains(err.Error(), "run the same command again to go on") || client.ExitCode(err) != wantCode {
			t.Fatalf("an import that is interrupted: %v (exit %d, want %d)", err, client.ExitCode(err), wantCode)
		}
		if got := exported(t, direct, "/"); strings.Contains(got, "old") || got == want || got == "null" {
			t.Fatalf("the interrupted import left %.200s", got)
		}

		other := opts
		other.Path = "/elsewhere"
		if _, err := c.Import(t.Context(), other); err == nil || !strings.Contains(err.Error(), "is the journal of an import to /") {
			t.Errorf("another import of the file: %v", err)
		}
		broken.heal()
		report, err := c.Import(t.Context(), opts)
		if err != nil || report.Resumed < 1 || report.Resumed > 20 {
			t.Fatalf("the import that goes on: %+v, %v", report, err)
		}
		if got := exported(t, direct, "/"); got != want {
			t.Errorf("after the import went on: %.300s…", got)
		}
		if sent := broken.distinct(); sent > report.Requests-report.Resumed {
			t.Errorf("%d different requests were sent for %d that were left", sent, report.Requests-report.Resumed)
		}
	}
}

// TestImportOfAChangedFile: the journal of another file is not believed.
func TestImportOfAChangedFile(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	broken := newFlaky(t, server, 10)
	c := clientOf(t, plainServer(t, broken))
	source := file(t, "rooms.json", []byte(rooms(500)))
	opts := client.Import{File: source, Path: "/", Mode: client.ModeMerge, RequestBytes: 1 << 10}
	if _, err := c.Import(t.Context(), opts); err == nil {
		t.Fatal("the import was not interrupted")
	}
	broken.heal()
	// One that is longer, and one that differs in a single byte near its end.
	text := []byte(rooms(500))
	text[bytes.LastIndexByte(text, '1')] = '2'
	for _, changed := range [][]byte{[]byte(rooms(501)), text} {
		if err := os.WriteFile(source, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Import(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "with --merge, of a file") || client.ExitCode(err) != client.ExitOther {
			t.Errorf("the import of a file that changed: %v", err)
		}
	}
	if err := os.WriteFile(source+client.JournalSuffix, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Import(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "delete it to start again") {
		t.Errorf("an import with a damaged journal: %v", err)
	}
}

// TestImportWithoutFlagsIsNamed: the journal of an import without --merge and
// --replace names no flag, for there is none.
func TestImportWithoutFlagsIsNamed(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	c := clientOf(t, plainServer(t, newFlaky(t, server, 10)))
	source := file(t, "rooms.json", []byte(rooms(500)))
	opts := client.Import{File: source, Path: "/", Mode: client.ModeFill, RequestBytes: 1 << 10}
	if _, err := c.Import(t.Context(), opts); err == nil {
		t.Fatal("the import was not interrupted")
	}
	opts.Path = "/other"
	_, err := c.Import(t.Context(), opts)
	if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "an import to / of http://") {
		t.Errorf("the journal is told as: %v", err)
	}
}

// TestJournalThatCannotBeWritten: what could not be written whole does not stay.
func TestJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := startServer(t, "127.0.0.1:0").client(t)
	source := file(t, "rooms.json", []byte(rooms(500)))
	journal := source + client.JournalSuffix
	if err := os.WriteFile(journal+".tmp", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A directory in its place keeps the journal from its name.
	warned := ""
	opts := client.Import{
		File: source, Path: "/", Mode: client.ModeFill, RequestBytes: 1 << 10,
		Warn: func(text string) { warned = text },
		Phase: func(name string, _ int64) {
			if name == "checking" {
				if err := os.Mkdir(journal, 0o700); err != nil {
					t.Error(err)
				}
			}
		},
	}
	if _, err := c.Import(t.Context(), opts); err != nil || warned == "" {
		t.Errorf("import = %v, warned %q", err, warned)
	}
	if _, err := os.Stat(journal + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s.tmp stays: %v", journal, err)
	}
}

// TestExportThatBreaks: a text that is not whole never becomes a file.
func TestExportThatBreaks(t *testing.T) {
	t.Parallel()
	bodies := map[string]func(w http.ResponseWriter){
		"cut off": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"a":1,`)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		},
		"ends early":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"a":1`) },
		"no body":       func(http.ResponseWriter) {},
		"not JSON":      func(w http.ResponseWriter) { _, _ = io.WriteString(w, `<html>`) },
		"two":           func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{} {}`) },
		"error in JSON": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"a":1,}`) },
	}
	for name, body := range bodies {
		c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { body(w) })))
		target := filepath.Join(t.TempDir(), "out.json")
		if err := os.WriteFile(target, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := c.Export(t.Context(), client.Export{File: target})
		if err == nil || !strings.Contains(err.Error(), "no file was written") {
			t.Errorf("%s: %v", name, err)
		}
		files, err := os.ReadDir(filepath.Dir(target))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: files %v stay, %v", name, files, err)
		}
		if text, err := os.ReadFile(target); err != nil || string(text) != "before" {
			t.Errorf("%s: the old file is now %q, %v", name, text, err)
		}
	}
	c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, rooms(5000)) })))
	if _, err := c.Export(t.Context(), client.Export{File: filepath.Join(t.TempDir(), "no", "such")}); client.ExitCode(err) != client.ExitFile {
		t.Errorf("an export to nowhere: %v", err)
	}
	if _, err := c.Export(t.Context(), client.Export{Output: fullDisk{}}); client.ExitCode(err) != client.ExitFile {
		t.Errorf("an export to a full disk: %v", err)
	}
}
