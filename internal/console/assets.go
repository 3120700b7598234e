package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/livetree/livetree/internal/exchange"
)

// types are those of the files that the page may have. A file of another type is not
// served: the types that the system knows differ from machine to machine.
var types = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json; charset=utf-8",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
}

// isServed reports whether a file is one of the page, and not one of its tests.
func isServed(name string) bool {
	return types[path.Ext(name)] != "" && !strings.HasSuffix(name, ".test.js")
}

// maxFile bounds a file of a checkout.
const maxFile = 4 << 20

// An asset is a file of the page, with its compressed forms.
type asset struct {
	kind  string // its Content-Type
	plain []byte
	gzip  func() []byte // made when first asked for
	zstd  func() []byte
}

func newAsset(name string, content []byte) *asset {
	return &asset{
		kind:  types[path.Ext(name)],
		plain: content,
		gzip:  sync.OnceValue(func() []byte { return gzipped(content) }),
		zstd:  sync.OnceValue(func() []byte { return zstandard(content) }),
	}
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // it is a level
	_, _ = w.Write(content)                               // to memory
	_ = w.Close()
	return b.Bytes()
}

// zstandard takes little memory: at the best level each file would take 60 MB for a moment.
func zstandard(content []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	defer w.Close() //nolint:errcheck // it has nothing left to write
	return w.EncodeAll(content, nil)
}

// serve answers with the file, in the shortest form that the client takes.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	header, content := w.Header(), a.plain
	header.Set("Content-Type", a.kind)
	header.Add("Vary", "Accept-Encoding")
	for _, form := range []struct {
		name string
		make func() []byte
	}{{"zstd", a.zstd}, {"gzip", a.gzip}} {
		if !accepts(r.Header, form.name) {
			continue
		}
		if short := form.make(); len(short) < len(content) {
			header.Set("Content-Encoding", form.name)
			content = short
		}
		break
	}
	exchange.SetLength(header, len(content))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // nobody is left to be told
	}
}

// accepts reports whether a client takes an encoding. One with a weight of zero is
// refused; other weights are all the same to us.
func accepts(header http.Header, encoding string) bool {
	for _, line := range header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), encoding) {
				weight = strings.ReplaceAll(weight, " ", "")
				return !strings.HasPrefix(weight, "q=0") || strings.ContainsAny(weight[len("q=0"):], "123456789")
			}
		}
	}
	return false
}

// kept are the files of the binary, under their hash.
type kept struct {
	hash   string
	byName map[string]*asset
}

// keep reads all files and works out their hash.
func keep(from fs.FS) (kept, error) {
	contents, sum := map[string][]byte{}, sha256.New()
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isServed(name) {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		contents[name] = content
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(content), content) // in the order of names
		return nil
	})
	k := kept{hash: hex.EncodeToString(sum.Sum(nil)[:8]), byName: make(map[string]*asset, len(contents))}
	if err == nil && contents[page] == nil {
		err = fs.ErrNotExist
	}
	for name, content := range contents {
		if name == page {
			content = bytes.ReplaceAll(content, []byte(unhashed), []byte(Assets+k.hash+"/"))
		}
		k.byName[name] = newAsset(name, content)
	}
	return k, err
}

func (k kept) asset(hash, name string) (*asset, bool) {
	a, ok := k.byName[name]
	return a, ok && (hash == k.hash || hash == "" && name == page)
}

func (kept) forever() bool { return true }

// A checkout is a directory whose files are read for every request.
type checkout struct{ dir fs.FS }

func (c checkout) asset(hash, name string) (*asset, bool) {
	if !isServed(name) || hash != noHash && (hash != "" || name != page) {
		return nil, false
	}
	file, err := c.dir.Open(name)
	if err != nil {
		return nil, false
	}
	defer file.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, false
	}
	return newAsset(name, content), true
}

func (checkout) forever() bool { return false }
