package rest_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/exchange"
)

// TestAnswersOverHTTP2HaveTails: a handler does not wait for its client where the end of the answer counts for the connection.
func TestAnswersOverHTTP2HaveTails(t *testing.T) {
	t.Parallel()
	handler, _ := serveHandler(t, 64<<20)
	answers := budget.New(budget.Options{Limit: 64 << 20})
	tails := exchange.NewTails(answers, netip.MustParseAddrPort("192.0.2.1:1234"), 100, time.Minute)
	defer tails.Close()
	for i, target := range []string{"/a.json", "/a.txt"} {
		w := &window{ResponseRecorder: httptest.NewRecorder(), flush: func() {}}
		r := httptest.NewRequest("GET", "https://localhost"+target, nil)
		r.ProtoMajor = 2
		r = r.WithContext(exchange.WithTails(t.Context(), tails))
		handler.ServeHTTP(exchange.New(w, r), r)
		if w.flushed != 0 || answers.Taken() < int64(i+1)*(32<<10) || handler.BodiesTaken() != 0 {
			t.Errorf("%s: flushed %d times, %d bytes are taken of the connection's and %d of the handler's; want none, some, and none",
				target, w.flushed, answers.Taken(), handler.BodiesTaken())
		}
	}
}
