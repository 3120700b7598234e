package rest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compressBytes is the length from which an answer is worth compressing.
const compressBytes = 1 << 10

// compressorBytes is what a compressor takes, by heap profiles: gzip 801 KiB, zstd 629.
const compressorBytes = 832 << 10

// A compressor is a pooled encoder of one Content-Encoding.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// compressors are the encodings we offer, the better ones first. Their settings
// favour speed: the answer is made for one client.
var compressors = []struct {
	name string
	pool *sync.Pool
}{
	{"zstd", &sync.Pool{New: func() any {
		// The window bounds the memory of both sides.
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return w
	}}},
	{"gzip", &sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err)
		}
		return w
	}}},
}

// pooled gives its compressor back when it is closed.
type pooled struct {
	compressor
	pool *sync.Pool
}

func newCompressor(encoding string, w io.Writer) *pooled {
	for _, c := range compressors {
		if c.name == encoding {
			encoder := c.pool.Get().(compressor)
			encoder.Reset(w)
			return &pooled{encoder, c.pool}
		}
	}
	panic("rest: no compressor " + encoding)
}

func (p *pooled) Close() error {
	err := p.compressor.Close()
	p.compressor.Reset(nil)
	p.pool.Put(p.compressor)
	return err
}

// A lateCompressor compresses what turns out to be worth it: it holds the first
// bytes back, and passes them on as they are if no more come. The head of the
// answer must not be out before that.
type lateCompressor struct {
	w        io.Writer
	header   http.Header
	encoding string
	allowed  func() bool // whether there is memory for a compressor

	held []byte
	to   io.Writer // once there is enough
}

func (l *lateCompressor) Write(p []byte) (int, error) {
	if l.to == nil && len(l.held)+len(p) < compressBytes {
		l.held = append(l.held, p...)
		return len(p), nil
	}
	if l.to == nil {
		l.to = l.w
		if l.allowed() {
			l.header.Set("Content-Encoding", l.encoding)
			l.to = newCompressor(l.encoding, l.w)
		}
		if _, err := l.to.Write(l.held); err != nil {
			return 0, err
		}
	}
	return l.to.Write(p)
}

// Close writes what is left.
func (l *lateCompressor) Close() error {
	switch to := l.to.(type) {
	case nil:
		_, err := l.w.Write(l.held)
		return err
	case *pooled:
		return to.Close()
	}
	return nil
}

// negotiate returns the encoding that the client takes and we like best, empty
// for none.
func negotiate(header http.Header) string {
	accepted := map[string]bool{}
	for part := range strings.SplitSeq(strings.Join(header.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(part, ";")
		accepted[strings.ToLower(strings.TrimSpace(name))] = positive(quality)
	}
	for _, c := range compressors {
		if accepted[c.name] {
			return c.name
		}
	}
	return ""
}

// blanks takes out what may stand around a quality.
var blanks = strings.NewReplacer(" ", "", "\t", "")

// positive reports whether a quality such as q=0.5 is not zero.
func positive(quality string) bool {
	value, ok := strings.CutPrefix(strings.ToLower(blanks.Replace(quality)), "q=")
	if !ok {
		return true
	}
	q, err := strconv.ParseFloat(value, 64)
	return err == nil && q > 0
}
