package lane

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A wire is a connection whose client sends pieces, each of which arrives by itself,
// and then no more.
type wire struct {
	pieces [][]byte
	reads  sync.Mutex
	writes sync.Mutex
	out    bytes.Buffer
	once   sync.Once
	closed chan struct{}
}

func (w *wire) Read(p []byte) (int, error) {
	w.reads.Lock()
	defer w.reads.Unlock()
	if len(w.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, w.pieces[0])
	if w.pieces[0] = w.pieces[0][n:]; len(w.pieces[0]) == 0 {
		w.pieces = w.pieces[1:]
	}
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.writes.Lock()
	defer w.writes.Unlock()
	return w.out.Write(p)
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (w *wire) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// wires is a listener for connections that a test makes.
type wires chan net.Conn

func (w wires) Accept() (net.Conn, error) {
	conn, ok := <-w
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (w wires) Close() error   { return nil }
func (w wires) Addr() net.Addr { return &net.TCPAddr{} }

// mirrored counts the requests that did not come from net/http.
var mirrored atomic.Int64

// mirror answers with all that it was asked, in a way that the question says.
func mirror(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Context().Value(http.ServerContextKey) == nil {
		mirrored.Add(1)
	}
	header.Set("X-Method", r.Method)
	header.Set("Content-Type", "text/plain")
	var body []byte
	var err error
	switch {
	case strings.Contains(r.RequestURI, "unread"):
	case strings.Contains(r.RequestURI, "part"):
		body = make([]byte, 2)
		_, err = io.ReadFull(r.Body, body)
	default:
		body, err = io.ReadAll(r.Body)
	}
	names := make([]string, 0, len(r.Header))
	for name, values := range r.Header {
		names = append(names, fmt.Sprintf("%s=%q", name, values))
	}
	slices.Sort(names)
	text := fmt.Sprintf("%s %q %q %q %q %d %q %v", r.Method, r.RequestURI, r.URL, r.Host, names, r.ContentLength, body, err)
	switch {
	case strings.Contains(r.RequestURI, "nothing"):
		w.WriteHeader(http.StatusNoContent)
		return
	case strings.Contains(r.RequestURI, "last"):
		header.Set("Connection", "close")
	case strings.Contains(r.RequestURI, "cut"):
		header.Set("Content-Length", "1000000")
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case strings.Contains(r.RequestURI, "long"):
		text = strings.Repeat(text+"\n", 200)
	}
	_, _ = io.WriteString(w, text)
}

// What an answer says of its connection.
const stays, ends = " stays ", " ends "

// answersOf takes apart what a client was sent.
func answersOf(sent []byte) (answers []string) {
	reader := bufio.NewReaderSize(bytes.NewReader(sent), len(sent)+16)
	for reader.Buffered() > 0 || len(answers) == 0 {
		ahead, _ := reader.Peek(len(sent) + 1)
		if len(ahead) > 0 {
			ahead, _ = reader.Peek(reader.Buffered())
		}
		head, _, _ := bytes.Cut(ahead, headEnd)
		request := &http.Request{Method: http.MethodGet}
		if bytes.Contains(head, []byte("X-Method: HEAD")) {
			request.Method = http.MethodHead
		}
		response, err := http.ReadResponse(reader, request)
		if err != nil {
			return append(answers, "no answer: "+err.Error())
		}
		body, err := io.ReadAll(response.Body)
		response.Header.Del("Date")
		response.Header.Del("Content-Length") // when chunks begin differs
		answers = append(answers, fmt.Sprint(response.Status, response.Header, map[bool]string{false: stays, true: ends}[response.Close], string(body), err))
	}
	return answers
}

// randomStream returns what a client of few scruples sends: heads and bodies in
// turn.
func randomStream(random *rand.Rand) (stream [][]byte) {
	paths := []string{"/a.json", "/unread", "/part", "/nothing", "/long", "/last", "/cut", "/a%20b?c=%22d%22", "/%zz", "//x", "*"}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	seldom := func(text string) string {
		if random.IntN(100) == 0 {
			return text
		}
		return ""
	}
	for range 1 + random.IntN(6) {
		body := strings.Repeat(pick("x", "\r\n", "GET / HTTP/1.1\r\nHost: b\r\n\r\n", "0\r\n\r\n"), random.IntN(5)) +
			seldom(strings.Repeat("y", random.IntN(3*inBytes)))
		path := paths[0]
		if random.IntN(3) == 0 {
			path = pick(paths...)
		}
		method := pick("GET", "PUT", "POST", "PATCH", "DELETE", "POST") + seldom("S")
		head := seldom("HEAD /a.json HTTP/1.1\r\n") + method + " " + path + " HTTP/1.1\r\n"
		head += "Host: a" + seldom("\r\nHost: b") + seldom(" ") + "\r\n"
		if method[0] == 'P' || random.IntN(20) == 0 {
			length := len(body) + []int{0, 0, 0, 0, 0, 0, 0, 0, -1, 1}[random.IntN(10)]
			head += fmt.Sprintf("%s:%s%d%s\r\n", pick("Content-Length", "content-length", "CONTENT-LENGTH"), pick(" ", "", "\t", " 0"), max(length, 0), pick("", "", " "))
		} else {
			body = ""
		}
		head += seldom("Transfer-Encoding: chunked\r\n") + seldom("Transfer-Encoding:\r\n") + seldom("Connection: close\r\n")
		head += seldom("Connection: keep-alive\r\n") + seldom("X-Odd: \x80\xff\r\n") + seldom("x-\x00: \r\n") + seldom(" folded\r\n")
		head += seldom("X : y\r\n") + seldom("X: a\x00b\r\n") + seldom("X: y\n") + seldom("X: y\r\r\n") + seldom("\r") + seldom("Expect: 100-continue\r\n")
		head += seldom(strings.Repeat("X-Many: y\r\n", random.IntN(40))) + seldom("X-Long: "+strings.Repeat("z", random.IntN(2*inBytes))+"\r\n")
		stream = append(stream, []byte(head+"\r\n"), []byte(body+seldom("\r\n")+seldom("\n\r\n")+seldom("junk")))
	}
	for random.IntN(8) == 0 { // and something is broken
		piece := stream[random.IntN(len(stream)/2)*2]
		piece[random.IntN(len(piece))] = pick("\r", "\n", "\x00", " ", ":", "0", "\t", "\xff")[0]
	}
	return append(stream, []byte("GET /end.json HTTP/1.1\r\nHost: a\r\n\r\n"))
}

// inPieces cuts a stream anywhere, or as most clients do: each request by itself,
// or each head and each body.
func inPieces(random *rand.Rand, stream [][]byte) (pieces [][]byte) {
	whole := slices.Concat(stream...)
	switch random.IntN(4) {
	case 0:
		most := []int{1, 40, 1000, len(whole)}[random.IntN(4)]
		for len(whole) > 0 {
			n := min(1+random.IntN(most), len(whole))
			pieces, whole = append(pieces, whole[:n]), whole[n:]
		}
	case 1:
		pieces = stream
	case 2:
		for request := range slices.Chunk(stream, 2) {
			pieces = append(pieces, slices.Concat(request...))
		}
	default:
		pieces = [][]byte{whole}
	}
	return slices.DeleteFunc(pieces, func(piece []byte) bool { return len(piece) == 0 })
}

// TestStreamsAreReadAsByNetHTTP sends the same bytes to a lane and to net/http alone,
// however they are cut into pieces: the answers are the same. So nothing that a
// client or a proxy sends is two requests to one of them, and one to the other.
func TestStreamsAreReadAsByNetHTTP(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 3000
	if testing.Short() || raceEnabled {
		rounds = 300
	}
	synctest.Test(t, func(t *testing.T) { // because net/http pauses before it closes
		c := newComparison()
		defer c.close()
		for range rounds {
			stream := randomStream(random)
			c.compare(t, slices.Concat(stream...), inPieces(random, stream))
		}
		t.Logf("%d of %d connections were handed over; the lane answered %d requests", c.handed.Load(), rounds, mirrored.Load())
	})
}

// TestShortBodiesAreReadAsByNetHTTP does so with bodies of which much is missing, which random streams seldom have.
func TestShortBodiesAreReadAsByNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newComparison()
		defer c.close()
		for _, path := range []string{"/a.json", "/part", "/unread", "/nothing", "/long"} {
			for _, length := range []int{10, 5000, 70_000, 100_000, 300_000} {
				text := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nGET /end.json HTTP/1.1\r\nHost: a\r\n\r\n", path, length)
				c.compare(t, text, [][]byte{slices.Clone(text)})
			}
		}
	})
}

// FuzzConnection does so with any bytes. Each cut is the length of a piece.
func FuzzConnection(f *testing.F) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		cuts := make([]byte, random.IntN(40))
		for i := range cuts {
			cuts[i] = byte(random.IntN(256))
		}
		f.Add(slices.Concat(randomStream(random)...), cuts)
	}
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := newComparison()
			defer c.close()
			c.compare(t, text, cutAt(slices.Clone(text), cuts))
		})
	})
}

// cutAt cuts a text into pieces. The last one is what is left.
func cutAt(text, cuts []byte) (pieces [][]byte) {
	for _, cut := range cuts {
		n := min(1+int(cut), len(text))
		if n == len(text) {
			break
		}
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	if len(text) > 0 {
		pieces = append(pieces, text)
	}
	return pieces
}

// A comparison is a lane, with net/http behind it, and net/http alone.
type comparison struct {
	lane   *Lane
	conns  wires
	handed atomic.Int64
}

func newComparison() *comparison {
	handler := http.HandlerFunc(mirror)
	c := &comparison{conns: make(wires)}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = server.Serve(c.conns) }()
	c.lane = New(Options{Handler: handler, Context: testContext, HandOver: func(conn net.Conn) { c.handed.Add(1); c.conns <- conn }, ConnState: nobodyTold,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now, First: time.Hour, Idle: time.Hour, Write: time.Hour})
	return c
}

func (c *comparison) close() { close(c.conns) }

// compare sends a text to net/http as a whole, and to the lane in pieces.
func (c *comparison) compare(t *testing.T, text []byte, pieces [][]byte) {
	t.Helper()
	answers := func(pieces [][]byte, serve func(net.Conn)) []string {
		w := &wire{pieces: pieces, closed: make(chan struct{})}
		serve(w)
		<-w.closed
		synctest.Wait()
		return answersOf(w.out.Bytes())
	}
	want := answers([][]byte{slices.Clone(text)}, func(conn net.Conn) { c.conns <- conn })
	got := answers(pieces, c.lane.Serve)
	if n := len(got); n == len(want) && got[n-1] != want[n-1] && endsInABody(text) {
		// The lane has answered before it knew that no more would come; net/http waits for it, and says that the connection ends. Or both
		// know, and the lane says so of more than 64 KiB that are missing, net/http of more than 256 KiB. The client has ended it.
		got[n-1], want[n-1] = strings.Replace(got[n-1], stays, ends, 1), strings.Replace(want[n-1], stays, ends, 1)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("to %q\nthe lane answers\n%q\nnet/http\n%q", text, got, want)
	}
}

// endsInABody reports whether a client has sent less of a body than it has said it would.
func endsInABody(text []byte) bool {
	for reader := bufio.NewReader(bytes.NewReader(text)); ; {
		r, err := http.ReadRequest(reader)
		if err != nil {
			return false
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}
