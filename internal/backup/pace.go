package backup

import (
	"context"
	"io"
	"time"

	"golang.org/x/time/rate"

	"github.com/livetree/livetree/internal/pause"
)

const (
	// defaultPace is how many bytes a second are read for a backup. A core hashes
	// and prints several times as many; the rest is left to the writers.
	defaultPace = 32 << 20
	// paceBytes is how much is read at once.
	paceBytes = 64 << 10
)

// A pacer bounds how fast things are read, by one goroutine. Nil does not.
type pacer struct {
	limiter    *rate.Limiter
	foreground *pause.Foreground
	now        func() time.Time
	resumed    time.Time // when it let the reader go on
}

// newPacer returns a pacer of some bytes a second: of defaultPace for 0, of no
// bound for less. It also rests as long as the requests of clients demand.
func newPacer(opts Options) *pacer {
	bytesPerSecond := opts.BytesPerSecond
	switch {
	case bytesPerSecond < 0:
		return nil
	case bytesPerSecond == 0:
		bytesPerSecond = defaultPace
	}
	return &pacer{rate.NewLimiter(rate.Limit(bytesPerSecond), paceBytes), opts.Foreground, opts.Now, opts.Now()}
}

// wait returns when n more bytes may be read.
func (p *pacer) wait(ctx context.Context, n int) error {
	if p != nil && p.foreground != nil {
		now := p.now()
		if err := pause.For(ctx, p.foreground.Rest(now, now.Sub(p.resumed))); err != nil {
			return err
		}
		defer func() { p.resumed = p.now() }()
	}
	for ; p != nil && n > 0; n -= paceBytes {
		if err := p.limiter.WaitN(ctx, min(n, paceBytes)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (p *pacer) reader(ctx context.Context, r io.Reader) io.Reader { return pacedReader{ctx, p, r} }

func (p *pacer) writer(ctx context.Context, w io.Writer) io.Writer { return pacedWriter{ctx, p, w} }

// The context is that of the one call that reads: a pacedReader does not outlive it.
type pacedReader struct {
	ctx   context.Context
	pacer *pacer
	r     io.Reader
}

func (r pacedReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b[:min(len(b), paceBytes)])
	if wait := r.pacer.wait(r.ctx, n); wait != nil {
		return n, wait
	}
	return n, err
}

type pacedWriter struct {
	ctx   context.Context
	pacer *pacer
	w     io.Writer
}

func (w pacedWriter) Write(b []byte) (int, error) {
	if err := w.pacer.wait(w.ctx, len(b)); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}
