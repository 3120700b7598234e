package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/hook"
)

const (
	// maxAttempt bounds how long one attempt takes.
	maxAttempt = 15 * time.Second
	// maxAnswer is how much of an answer is read, and keptAnswer how much of that is kept.
	maxAnswer, keptAnswer = 4 << 10, 512
	// keptPath is how much of a path is kept with an attempt.
	keptPath = 512
	// maxRetryAfter bounds what a receiver may ask for.
	maxRetryAfter = time.Hour
	// maxInFlight is how many deliveries of one hook are under way.
	maxInFlight = 32
)

// An outcome is what became of an attempt.
type outcome struct {
	status     int // 0 if there was no answer
	answer     string
	problem    string // why there was none
	retryAfter time.Duration
	took       time.Duration
	// event and path are those of the message, for the record.
	event, path string
}

func (o *outcome) ok() bool { return o.status >= 200 && o.status < 300 }

// post sends a message to the receiver of a hook, once.
func (r *Runner) post(ctx context.Context, h *hook.Hook, m message) outcome {
	began := r.opts.Elapsed()
	o := r.attempt(ctx, h, m, r.opts.Now())
	o.took = r.opts.Elapsed() - began
	o.event, o.path = m.Event, m.Path
	if len(o.path) > keptPath {
		o.path = cutText([]byte(o.path), keptPath) + "…"
	}
	return o
}

func (r *Runner) attempt(ctx context.Context, h *hook.Hook, m message, now time.Time) outcome {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Limits.Attempt)
	defer cancel()
	request, err := newRequest(ctx, h, m, now.Unix())
	if err != nil {
		return outcome{problem: err.Error()}
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return outcome{problem: problemOf(err)}
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	o := outcome{status: answer.StatusCode, answer: cutText(text, keptAnswer)}
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable {
		o.retryAfter = retryAfter(answer.Header.Get("Retry-After"), now)
	}
	return o
}

func newRequest(ctx context.Context, h *hook.Hook, m message, seconds int64) (*http.Request, error) {
	if len(h.Secrets) == 0 { // nobody could tell whose it is
		return nil, errNoSecret
	}
	body, err := bodyOf(m)
	if err != nil {
		return nil, err
	}
	signature, err := hook.Sign(h.Secrets, m.ID, seconds, body)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(h.URL, "http:") {
		ctx = context.WithValue(ctx, plainKey{}, true)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the url cannot be used")
	}
	request.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"Livetree"},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {strconv.FormatInt(seconds, 10)},
		"Webhook-Signature": {signature},
	}
	return request, nil
}

// bodyOf returns a message as JSON. What is JSON already goes in as it is: a < that became \u003c would make a body
// six times as large.
func bodyOf(m message) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(m)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// problemOf says why there was no answer, without the URL, which may hold what is secret.
func problemOf(err error) string {
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) {
		if cause := inner.Unwrap(); cause != nil {
			err = cause
		}
	}
	return cutText([]byte(err.Error()), keptAnswer)
}

// cutText returns text that is safe to show, of so many bytes at most.
func cutText(text []byte, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	for len(text) > 0 && !utf8.Valid(text) && len(text) > limit-utf8.UTFMax {
		text = text[:len(text)-1]
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// retryAfter reads the header: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
