package rest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
)

const (
	// bufferBytes is how much of an answer is gathered, so that its length can
	// be told, before it is sent as it comes.
	bufferBytes = 64 << 10
	// WriteIdle is how long a client may take none of an answer.
	WriteIdle = 30 * time.Second
)

// A reply is the answer to one request. It is given once: as content, or as an
// error.
type reply struct {
	w      http.ResponseWriter
	r      *http.Request
	now    func() time.Time
	logger *slog.Logger
	// overload counts refusals for lack of room.
	overload *exchange.Seldom
	asked    *question // as far as it was read
	dialect  *dialect
	usage    *usage
	body     *body // of the request, which may be on its way
}

// respond sends content as the parameters ask for it.
func (a *reply) respond(status int, body content) error {
	header, params := a.w.Header(), &a.asked.params
	if params.print == silent && status == http.StatusOK {
		if a.r.ProtoMajor == 1 && !a.dialect.keep && !wantsKeepAlive(a.r.Header) {
			header.Set("Connection", "close")
		}
		a.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	header["Content-Type"] = exchange.JSONTypes
	if params.callback != "" {
		header.Set("Content-Type", scriptType)
	}
	if params.download != "" {
		header.Set("Content-Disposition", params.download)
	}
	size, known := body.Size()
	plain := params.callback == "" && params.print == compact
	if plain && known && (size < compressBytes || a.asked.verb == head) {
		exchange.SetLength(header, size)
		a.w.WriteHeader(status)
		if a.asked.verb == head {
			return nil
		}
		// The status is out: an error, which can only be the client's, ends
		// the connection by itself.
		_ = body.PrintTo(a.w)
		a.settle()
		return nil
	}
	if a.asked.verb == head {
		a.w.WriteHeader(status)
		return nil
	}
	return a.print(status, body)
}

// wantsKeepAlive reports whether a client asked to keep its connection.
func wantsKeepAlive(header http.Header) bool {
	return strings.Contains(strings.ToLower(header.Get("Connection")), "keep-alive") || header.Get("Keep-Alive") != ""
}

// print sends content of unknown or considerable length through the layers
// that the request calls for.
func (a *reply) print(status int, body content) error {
	params := &a.asked.params
	out := &output{reply: a, status: status, control: http.NewResponseController(a.w)}
	defer out.free()
	var w io.Writer = out
	var layers []interface{ Close() error } // in the order to close them
	encoding := negotiate(a.r.Header)
	defer out.turn.end()
	if err := out.prepareTurn(body, encoding); err != nil {
		return err
	}
	if encoding != "" {
		compressor := &lateCompressor{w: w, header: a.w.Header(), encoding: encoding, allowed: a.usage.chargeCompressor}
		w, layers = compressor, append(layers, compressor)
	}
	a.w.Header().Add("Vary", "Accept-Encoding")
	if params.callback != "" {
		script := &scriptWriter{w: w, name: params.callback}
		w, layers = script, append(layers, script)
	}
	if params.print == pretty {
		pretty := &prettyWriter{w: w}
		w, layers = pretty, append(layers, pretty)
	}
	if out.turn.turns != nil {
		out.paced = pacedWriter{w, &out.turn}
		w = &out.paced
	}
	err := state.PrintError(body.PrintTo(w))
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
			a.w.Header().Del("Content-Encoding")
		}
		return err
	}
	if !isGone(a.r, err) && !errors.Is(err, outbox.ErrSlow) {
		a.logger.Error("an answer was cut off", "path", a.loggedPath(), "error", exchange.Redact(err.Error()))
	}
	abort()
	return nil
}

// An output gathers the beginning of an answer and passes on the rest.
type output struct {
	*reply
	status  int
	control *http.ResponseController
	buf     []byte
	pooled  *[]byte // what buf was made from
	sent    bool    // the head is out

	turn  turn        // to print, not to send
	paced pacedWriter // what is printed to, if there is a turn
	rate  outbox.Rate // at which the client takes it
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

func (o *output) Write(p []byte) (int, error) {
	if !o.sent && o.pooled == nil {
		o.pooled = outputBuffers.Get().(*[]byte)
		o.buf = (*o.pooled)[:0]
	}
	if !o.sent && len(o.buf)+len(p) <= bufferBytes {
		o.buf = append(o.buf, p...)
		return len(p), nil
	}
	if err := o.turn.take(); err != nil {
		return 0, err // it turns out to be long
	}
	if !o.sent {
		if o.asked.verb.reads() { // a write is made: its client must not be told to try again
			if err := o.usage.chargeLong(); err != nil {
				return 0, err
			}
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
		o.dropBody()
		o.w.WriteHeader(o.status)
	}
	if err := o.rate.Check(); err != nil {
		return err
	}
	begun := o.now()
	// Errors are of writers that know no deadlines: those of tests.
	_ = o.control.SetWriteDeadline(begun.Add(WriteIdle))
	o.turn.pause()
	if _, err := o.w.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	o.rate.Count(len(p), o.now().Sub(begun))
	if o.usage.isMultiplexed() {
		// At the deadline net/http would end the answer even if nothing is written then.
		_ = o.control.SetWriteDeadline(time.Time{})
	}
	return o.turn.resume()
}

// finish sends what is left. The deadline must not outlive the request: the
// connection may serve another.
func (o *output) finish() error {
	o.turn.end() // nothing is left to print
	if !o.sent {
		exchange.SetLength(o.w.Header(), len(o.buf))
		if err := o.send(o.buf); err != nil {
			return err
		}
	}
	if o.usage.isMultiplexed() {
		o.settle() // the deadline is that of the request
		return nil
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
