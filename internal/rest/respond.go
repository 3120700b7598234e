package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// bufferBytes is how much of an answer is gathered, so that its length can
	// be told, before it is sent as it comes.
	bufferBytes = 64 << 10
	// WriteIdle is how long a client may take none of an answer.
	WriteIdle = 30 * time.Second
	// readRate is the least it must take, in bytes a second, over rateWindow.
	readRate   = 16 << 10
	rateWindow = 60 * time.Second
)

// respond sends content as the parameters ask for it.
func (c *call) respond(status int, body content) error {
	header := c.w.Header()
	if c.params.print == silent && status == http.StatusOK {
		if c.r.ProtoMajor == 1 && !c.dialect().keep && !wantsKeepAlive(c.r.Header) {
			header.Set("Connection", "close")
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	header["Content-Type"] = jsonTypes
	if c.params.callback != "" {
		header.Set("Content-Type", scriptType)
	}
	if c.params.download != "" {
		header.Set("Content-Disposition", c.params.download)
	}
	size, known := body.Size()
	plain := c.params.callback == "" && c.params.print == compact
	if plain && known && (size < compressBytes || c.verb == head) {
		setLength(header, size)
		c.w.WriteHeader(status)
		if c.verb == head {
			return nil
		}
		// The status is out: an error, which can only be the client's, ends
		// the connection by itself.
		_ = body.PrintTo(c.w)
		return nil
	}
	if c.verb == head {
		c.w.WriteHeader(status)
		return nil
	}
	return c.stream(status, body)
}

// wantsKeepAlive reports whether a client asked to keep its connection.
func wantsKeepAlive(header http.Header) bool {
	return strings.Contains(strings.ToLower(header.Get("Connection")), "keep-alive") || header.Get("Keep-Alive") != ""
}

// stream sends content of unknown or considerable length through the layers
// that the request calls for.
func (c *call) stream(status int, body content) error {
	out := &output{call: c, status: status, control: http.NewResponseController(c.w), started: c.opts.Now()}
	defer out.free()
	var w io.Writer = out
	var layers []interface{ Close() error } // in the order to close them
	if encoding := negotiate(c.r.Header); encoding != "" {
		compressor := &lateCompressor{w: w, header: c.w.Header(), encoding: encoding}
		w, layers = compressor, append(layers, compressor)
	}
	c.w.Header().Add("Vary", "Accept-Encoding")
	if c.params.callback != "" {
		script := &scriptWriter{w: w, name: c.params.callback}
		w, layers = script, append(layers, script)
	}
	if c.params.print == pretty {
		pretty := &prettyWriter{w: w}
		w, layers = pretty, append(layers, pretty)
	}
	err := body.PrintTo(w)
	for i := len(layers) - 1; i >= 0; i-- {
		if err == nil {
			err = layers[i].Close()
		}
	}
	if err == nil {
		err = out.finish()
	}
	if err == nil || !out.sent {
		if err != nil {
			c.w.Header().Del("Content-Encoding")
		}
		return err
	}
	if !isGone(c.r, err) && !errors.Is(err, errSlowReader) {
		c.opts.Logger.Error("an answer was cut off", "path", c.path().String(), "error", err)
	}
	abort()
	return nil
}

// An output gathers the beginning of an answer and passes on the rest.
type output struct {
	*call
	status  int
	control *http.ResponseController
	buf     []byte
	pooled  *[]byte // what buf was made from
	sent    bool    // the head is out

	started time.Time // of the current rateWindow
	window  int64     // bytes written in it
}

// errGone is what a write to the client fails with. Its context may not have ended.
var errGone = errors.New("the client has gone")

// outputBuffers are where answers are gathered; most of them never grow, as a
// printer of the store writes before that.
var outputBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, 40<<10)
	return &buf
}}

// free gives the buffer back.
func (o *output) free() {
	if o.pooled != nil {
		outputBuffers.Put(o.pooled) // as it was, should buf have grown
		o.pooled, o.buf = nil, nil
	}
}

var errSlowReader = errors.New("the client takes the answer too slowly")

func (o *output) Write(p []byte) (int, error) {
	if !o.sent && o.pooled == nil {
		o.pooled = outputBuffers.Get().(*[]byte)
		o.buf = (*o.pooled)[:0]
	}
	if !o.sent && len(o.buf)+len(p) <= bufferBytes {
		o.buf = append(o.buf, p...)
		return len(p), nil
	}
	if !o.sent {
		if err := o.chargeLong(); err != nil {
			return 0, err
		}
		if err := o.send(o.buf); err != nil {
			return 0, err
		}
		o.free() // a slow client keeps the rest waiting
	}
	return len(p), o.send(p)
}

// send writes to the client, within the limits for slow ones.
func (o *output) send(p []byte) error {
	if !o.sent {
		o.sent = true
		o.w.WriteHeader(o.status)
	}
	now := o.opts.Now()
	if elapsed := now.Sub(o.started); elapsed > rateWindow {
		if float64(o.window) < readRate*elapsed.Seconds() {
			return errSlowReader
		}
		o.started, o.window = now, 0
	}
	o.window += int64(len(p))
	// Errors are of writers that know no deadlines: those of tests.
	_ = o.control.SetWriteDeadline(now.Add(WriteIdle))
	if _, err := o.w.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// finish sends what is left. The deadline must not outlive the request: the
// connection may serve another.
func (o *output) finish() error {
	if !o.sent {
		setLength(o.w.Header(), len(o.buf))
		if err := o.send(o.buf); err != nil {
			return err
		}
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
