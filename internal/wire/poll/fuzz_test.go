package poll_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzPoll: whatever a client asks for, the answer is a script or an error, and memory is
// given back.
func FuzzPoll(f *testing.F) {
	f.Add("seg0=0&ts0=1&d0=e30.")
	f.Add("seg0=1&ts0=2&d0=30.&seg1=0&ts1=2&d1=e")
	f.Add("seg0=0&ts0=1&d0=eyJ0IjoiYyIsImQiOnsidCI6Im4iLCJkIjp7fX19")
	f.Add("dframe=t")
	f.Add("disconn=t")
	f.Add("start=t&cb=1")
	s := newSite(f)
	given, giveUp := context.WithCancel(context.Background())
	giveUp() // a poll is not held for long
	f.Fuzz(func(t *testing.T, query string) {
		if strings.ContainsAny(query, " #\x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' }) {
			return // no request line has these
		}
		line, address := s.begin()
		w := recorder{httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequestWithContext(given, "GET", address+"&"+query, nil))
		if body := w.Body.String(); w.Code == 200 && body != "" && !strings.HasSuffix(body, ");") && !strings.HasPrefix(body, "<!DOCTYPE") {
			t.Errorf("%q is answered with %q", query, body)
		}
		line.Close()
		for len(s.opened) > 0 {
			(<-s.opened).Close()
		}
		if s.budget.used != 0 {
			t.Errorf("%q: %d bytes are not given back", query, s.budget.used)
		}
	})
}
