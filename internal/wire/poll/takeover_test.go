package poll_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/poll"
	"github.com/livetree/livetree/internal/wiretest"
)

const (
	ping      = `{"t":"c","d":{"t":"p","d":{}}}`
	pong      = `{"t":"c","d":{"t":"o","d":{}}}`
	goOver    = `{"t":"c","d":{"t":"a","d":{}}}`
	lastByOld = `{"t":"c","d":{"t":"n","d":{}}}`
)

// A socket is a websocket without a network.
type socket struct {
	in   chan string
	done chan struct{}
	gate chan struct{} // a Send waits for it; nil for none

	mu     sync.Mutex
	split  frame.Splitter
	text   string
	got    []string // messages that the server sent
	closed bool
}

func newSocket() *socket { return &socket{in: make(chan string, 1000), done: make(chan struct{})} }

func (s *socket) Next() ([]byte, error) {
	select {
	case text := <-s.in:
		return []byte(text), nil
	case <-s.done:
		return nil, io.ErrUnexpectedEOF
	}
}

func (s *socket) Send(p []byte) error {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return io.ErrClosedPipe
	}
	for len(p) > 0 {
		n, part := s.split.Next(p)
		p = p[n:]
		s.text += string(part.Text)
		if part.Last {
			s.got = append(s.got, s.text)
			s.text = ""
		}
	}
	return nil
}

func (s *socket) Gone() bool { return false }
func (s *socket) Cut()       { s.Close() }

func (s *socket) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

// sent returns what the server has sent since the last call.
func (s *socket) sent() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := strings.Join(s.got, " ")
	s.got = nil
	return got
}

// took has a socket take a line over, and returns how that ends.
func took(line *poll.Line, s *socket) <-chan error {
	end := make(chan error, 1)
	go func() { end <- line.TakeOver(s) }()
	return end
}

// received has a session on the line that only notes what it gets.
func received(line *poll.Line) (list func() string) {
	var mu sync.Mutex
	var got []string
	go func() {
		for {
			text, err := line.Next()
			mu.Lock()
			if err != nil {
				got = append(got, err.Error())
				mu.Unlock()
				return
			}
			got = append(got, string(text))
			mu.Unlock()
		}
	}()
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(got, " ")
		got = nil
		return all
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		session := received(line)
		ws := newSocket()
		end := took(line, ws)
		expect(t, "first by websocket", ws.sent(), goOver)
		ws.in <- ping
		ws.in <- ping
		expect(t, "pongs", ws.sent(), pong+" "+pong)
		send(t, line, note("by poll"))
		p.Expect(note("by poll"))
		p.Send(`{"t":"d","d":{"r":1}}`)
		expect(t, "requests by poll", session(), `{"t":"d","d":{"r":1}}`)

		ws.in <- goOver
		ws.in <- `{"t":"d","d":{"r":3}}` // overtakes those by poll
		expect(t, "requests before n", session(), "")
		p.Send(`{"t":"d","d":{"r":2}}`)
		p.Send(lastByOld)
		expect(t, "requests after n", session(), `{"t":"d","d":{"r":2}} {"t":"d","d":{"r":3}}`)
		p.Expect(lastByOld, "")
		ws.in <- ping
		expect(t, "a ping is the session's now", session(), ping)
		send(t, line, note("by websocket"))
		expect(t, "after n", ws.sent(), note("by websocket"))

		time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
		expect(t, "without polls", session(), "")
		if line.Gone() || s.lines.Count() != 0 {
			t.Errorf("Gone is %v, and there are %d lines", line.Gone(), s.lines.Count())
		}
		ws.Cut()
		if err := <-end; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the take-over ends with %v", err)
		}
		expect(t, "the end", session(), io.ErrUnexpectedEOF.Error())
		line.Close()
	})
}

// TestCloseCommandNamesTheAnswerWithN: without it the browser polls on for ever.
func TestCloseCommandNamesTheAnswerWithN(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		received(line)
		took(line, newSocket())
		synctest.Wait()
		older, newer := make(chan string, 1), make(chan string, 1)
		go func() { older <- s.get(address) }()
		synctest.Wait()
		go func() { newer <- s.get(address + "&seg0=0&ts0=1&d0=eyJ0IjoiYyIsImQiOnsidCI6Im4iLCJkIjp7fX19") }()
		// Which poll brings the last message back depends on who comes first.
		got := [2]string{<-older, <-newer}
		if strings.Contains(got[0], lastByOld) {
			got[0], got[1] = got[1], got[0]
		}
		n := "1"
		if got[0] != "pLPCommand('close',1);" {
			n = "2"
			expect(t, "the poll without n", got[0], "pRTLPCB(1,[]);")
		}
		expect(t, "the poll with n", got[1], "pRTLPCB("+n+",["+lastByOld+"]);")
		expect(t, "the next poll", s.get(address), "pLPCommand('close',"+n+");")
	})
}

// TestTakeOverInsideAMessage: what has begun by poll ends by poll.
func TestTakeOverInsideAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		defer line.Close()
		received(line)
		ws := newSocket()
		took(line, ws)
		expect(t, "first by websocket", ws.sent(), goOver)
		long := note(strings.Repeat("x", 100000))
		frames := frame.Append(nil, []byte(long))
		for _, cut := range []int{1, 20000, 50000} {
			if err := line.Send(frames[:cut]); err != nil {
				t.Error(err)
			}
			frames = frames[cut:]
			if cut == 20000 {
				p.Send(lastByOld)
			}
			synctest.Wait()
		}
		if err := line.Send(frame.Append(frames, []byte(note("a")))); err != nil {
			t.Error(err)
		}
		expect(t, "by websocket", ws.sent(), note("a"))
		p.Expect(long, lastByOld, "")
	})
}

// TestTakeOverWaitsForAPong: two must not send by the websocket at the same time.
func TestTakeOverWaitsForAPong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		defer line.Close()
		received(line)
		ws := newSocket()
		ws.gate = make(chan struct{})
		took(line, ws)
		ws.gate <- struct{}{}
		ws.in <- ping
		synctest.Wait()
		p.Send(lastByOld)
		synctest.Wait()
		send(t, line, note("a"))
		p.Expect(note("a"))
		close(ws.gate)
		p.Expect(lastByOld, "")
		send(t, line, note("b"))
		expect(t, "by websocket", ws.sent(), goOver+" "+pong+" "+note("b"))
	})
}

func TestSocketThatBreaksBeforeN(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		session := received(line)
		first := newSocket()
		end := took(line, first)
		first.in <- ping
		expect(t, "the first socket", first.sent(), goOver+" "+pong)
		first.Cut()
		<-end
		send(t, line, note("a"))
		p.Expect(note("a"))
		expect(t, "after the first socket", session(), "")

		unread := newSocket()
		end = took(line, unread)
		unread.in <- "{"
		var refused *frame.Error
		if err := <-end; !errors.As(err, &refused) || refused.Code != frame.CodeData {
			t.Errorf("%v, want code 1003", err)
		}

		second, third := newSocket(), newSocket()
		end = took(line, second)
		expect(t, "the second socket", second.sent(), goOver)
		took(line, third)
		if err := <-end; err == nil {
			t.Error("the second socket goes on beside the third")
		}
		p.Send(lastByOld)
		p.Expect(lastByOld, "")
		if err := line.TakeOver(newSocket()); !errors.Is(err, poll.ErrTaken) {
			t.Errorf("a line that was taken over: %v", err)
		}
		line.Close()
		expect(t, "the end", session(), "EOF")
		if third.Send(frame.Append(nil, []byte("{}"))) == nil {
			t.Error("the socket is open after the line")
		}
		if err := line.TakeOver(newSocket()); !errors.Is(err, poll.ErrTaken) {
			t.Errorf("a line that has ended: %v", err)
		}
	})
}

// TestTakersThatSendTooEarly: one that sends a request, and waits for its turn, does not
// wait beside the next one, and its request never reaches the session.
func TestTakersThatSendTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		session := received(line)
		var ends []<-chan error
		for range 5 {
			ws := newSocket()
			ws.in <- `{"t":"d","d":{"r":7}}`
			ends = append(ends, took(line, ws))
			synctest.Wait()
		}
		last := newSocket()
		took(line, last)
		synctest.Wait()
		for i, end := range ends {
			select {
			case <-end:
			default:
				t.Errorf("take-over %d goes on beside a later one", i)
			}
		}
		p.Send(lastByOld)
		p.Expect(lastByOld, "")
		last.in <- `{"t":"d","d":{"r":1}}`
		expect(t, "requests", session(), `{"t":"d","d":{"r":1}}`)
		line.Close()
	})
}

// TestTakerThatIsTriedForLong is given up, and the line goes on.
func TestTakerThatIsTriedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		defer line.Close()
		received(line)
		began := time.Now()
		if err := <-took(line, newSocket()); err == nil || time.Since(began) != 90*time.Second {
			t.Errorf("the socket is given up after %v, %v, want 90s", time.Since(began), err)
		}
		send(t, line, note("a"))
		p.Expect(note("a"))
		ws := newSocket()
		took(line, ws)
		expect(t, "another socket", ws.sent(), goOver)
		p.Send(lastByOld)
		p.Expect(lastByOld, "")
		time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
		send(t, line, note("b"))
		expect(t, "the socket that has taken over", ws.sent(), note("b"))
	})
}

// TestPollThatIsGivenUpAfterTheTakeOver: the browser takes its polls away. That is not the
// end of the session, which goes by the websocket.
func TestPollThatIsGivenUpAfterTheTakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		received(line)
		ws := newSocket()
		took(line, ws)
		synctest.Wait()
		got := make(chan string, 1)
		go func() { got <- s.get(address + "&seg0=0&ts0=1&d0=eyJ0IjoiYyIsImQiOnsidCI6Im4iLCJkIjp7fX19") }()
		expect(t, "the last answer", <-got, "pRTLPCB(1,["+lastByOld+"]);")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.ServeHTTP(failing{recorder{httptest.NewRecorder()}}, httptest.NewRequestWithContext(ctx, "GET", address, nil))
		ws.sent()
		send(t, line, note("a"))
		expect(t, "after the take-over", ws.sent(), note("a"))
		if line.Gone() {
			t.Error("the line has gone with its polls")
		}
	})
}

// failing is a recorder to which nothing can be written.
type failing struct{ recorder }

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestEndOfTheLineIsThatOfTheSocket: also of one that is only tried.
func TestEndOfTheLineIsThatOfTheSocket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, _ := s.begin()
		ws := newSocket()
		end := took(line, ws)
		ws.in <- `{"t":"d","d":{"r":3}}`
		synctest.Wait()
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		if _, err := line.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("Next returns %v, want EOF", err)
		}
		if err := <-end; err == nil {
			t.Error("the socket goes on")
		}
		line.Close()
	})
}

// TestTakeOverAtAnyMoment sends numbered messages both ways while the client goes over.
// None may be lost, come twice or out of order.
func TestTakeOverAtAnyMoment(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, round))
		s := newSite(t)
		p := wiretest.Poll(t, s.fetch, "", "")
		p.Expect(hello)
		line := <-s.opened
		line.Meet() // on a busy machine polls may be seconds apart
		ws := newSocket()
		const down, up = 200, 60
		moveUp := random.IntN(up)
		var all sync.WaitGroup
		all.Go(func() { _ = line.TakeOver(ws) })
		all.Go(func() { // the session's writer
			for i := range down {
				frames := frame.Append(nil, []byte(note(fmt.Sprint(i, strings.Repeat("x", random.IntN(2)*20000)))))
				half := i * 7 % len(frames)
				if err := errors.Join(line.Send(frames[:half]), line.Send(frames[half:])); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					time.Sleep(time.Duration(i*7919%3000) * time.Microsecond) //nolint:forbidigo // so that the client goes over meanwhile
				}
			}
		})
		heard := make(chan struct{})
		all.Go(func() { // the session's reader
			defer close(heard)
			for i := range up {
				if text, err := line.Next(); err != nil || string(text) != fmt.Sprintf(`{"t":"d","d":{"r":%d}}`, i) {
					t.Errorf("request %d: %s, %v", i, text, err)
				}
			}
		})
		ws.in <- goOver
		for i := range up {
			request := fmt.Sprintf(`{"t":"d","d":{"r":%d}}`, i)
			if i < moveUp {
				p.Send(request)
				continue
			}
			if i == moveUp {
				waitFor(t, ws, goOver)
				p.Send(lastByOld)
			}
			ws.in <- request
		}
		var got []string
		for len(got) == 0 || got[len(got)-1] != lastByOld {
			text, err := p.Next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		byPoll := len(got) - 1
		if byPoll < down {
			waitFor(t, ws, fmt.Sprintf(`{"t":"c","d":{"t":"e","d":"%d`, down-1))
		}
		ws.mu.Lock()
		got = append(got[:byPoll], ws.got[1:]...)
		ws.mu.Unlock()
		for i := range down {
			if !strings.HasPrefix(strings.ReplaceAll(got[i], "x", ""), note(fmt.Sprint(i))) {
				t.Fatalf("round %d: message %d of %d by poll is %.60s", round, i, byPoll, got[i])
			}
		}
		p.Expect("")
		<-heard
		line.Close()
		all.Wait()
	}
}

// waitFor waits until the last message by the websocket begins with a text.
func waitFor(t *testing.T, ws *socket, text string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Millisecond) { //nolint:forbidigo // a test of real concurrency
		ws.mu.Lock()
		got := ws.got
		ws.mu.Unlock()
		if len(got) > 0 && strings.HasPrefix(got[len(got)-1], text) {
			return
		}
	}
	t.Fatalf("%s does not come", text)
}
