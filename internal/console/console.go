// Package console serves the web console: the page that an operator opens in a
// browser.
//
// A Handler answers for /console/ and nothing else. Below /console/assets/ are the
// files of the page, under a hash of them all, so that a browser keeps them for good
// and never mixes two versions. Every other path is the page itself, which reads the
// address and shows what it names. Both are for everybody who reaches the listener:
// they hold nothing of the server. What the page then asks for is answered by package
// admin, to those who are signed in.
//
// The files of web/ are served as they are: nothing is built. The one thing that is
// put in is the hash: where index.html says /console/assets/-/, it is sent with the
// hash in place of the dash. With Options.Dir the files come from a directory, are
// read for every request and keep the dash: a change shows when the page is loaded
// again.
//
// The build tag no_console leaves the files out.
package console

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/livetree/livetree/internal/exchange"
)

const (
	// Root is where the console is, and Assets where its files are.
	Root   = "/console/"
	Assets = Root + "assets/"

	// unhashed stands in index.html for Assets with the hash.
	unhashed = Assets + noHash + "/"
	noHash   = "-"

	page = "index.html"
)

// ErrLeftOut says that the console is not in this binary.
var ErrLeftOut = errors.New("this livetree was built without the console: build it without the tag no_console, or name its files with --console-dir")

// Options configure a Handler.
type Options struct {
	// Dir is a directory with the files of the page, for work on it. Without it they
	// are those in the binary.
	Dir string
}

// A Handler serves the console.
type Handler struct {
	files files
}

// files are what a Handler serves.
type files interface {
	// asset returns a file by its name and the hash it is asked under; false if there
	// is none.
	asset(hash, name string) (*asset, bool)
	// forever reports whether a browser may keep a file without asking again.
	forever() bool
}

// New returns a handler. The error is ErrLeftOut if there are no files to serve.
func New(opts Options) (*Handler, error) {
	if opts.Dir != "" {
		dir := os.DirFS(opts.Dir)
		if _, err := fs.Stat(dir, page); err != nil {
			return nil, fmt.Errorf("the files of the console: %w", err)
		}
		return &Handler{files: checkout{dir}}, nil
	}
	if embedded == nil {
		return nil, ErrLeftOut
	}
	kept, err := keep(embedded)
	if err != nil {
		return nil, fmt.Errorf("the files of the console: %w", err)
	}
	return &Handler{files: kept}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		exchange.Fail(w, http.StatusMethodNotAllowed, "the console is only for reading")
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, Assets); ok {
		h.serveAsset(w, r, rest)
		return
	}
	if r.URL.Path == Manual {
		serveManual(w, r)
		return
	}
	index, ok := h.files.asset("", page)
	if !ok {
		exchange.Fail(w, http.StatusNotFound, "the page is missing")
		return
	}
	index.serve(w, r)
}

func (h *Handler) serveAsset(w http.ResponseWriter, r *http.Request, rest string) {
	hash, name, _ := strings.Cut(rest, "/")
	file, ok := h.files.asset(hash, name)
	if !ok || hash == "" {
		exchange.Fail(w, http.StatusNotFound, "the console has no such file: load the page again")
		return
	}
	if h.files.forever() {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	file.serve(w, r)
}
