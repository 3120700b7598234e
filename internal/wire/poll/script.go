package poll

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
)

// startScript returns what the first answer begins with. It defines the functions that all
// answers call, by the names that they have in the page around the frame.
func startScript(callback, id, password string) string {
	return "function pLPCommand(c, a1, a2, a3, a4) {\n" +
		`parent.window["pLPCommand` + callback + `"] && parent.window["pLPCommand` + callback + `"](c, a1, a2, a3, a4);` + "\n}\n" +
		"function pRTLPCB(pN, data) {\n" +
		`parent.window["pRTLPCB` + callback + `"] && parent.window["pRTLPCB` + callback + `"](pN, data);` + "\n}\n" +
		"pLPCommand('start','" + id + "','" + password + "');\n"
}

// closeCommand returns the script that ends the line, for the client too. With a number the client
// first waits for the answers up to that.
func closeCommand(last int) string {
	if last == 0 {
		return "pLPCommand('close');"
	}
	return "pLPCommand('close'," + strconv.Itoa(last) + ");"
}

// leavePage returns the page that reports when it is closed, or put aside: Chrome does not
// tell a page reliably that it is unloaded.
func leavePage(ask ask) string {
	address := "/.lp?disconn=t&id=" + ask.id + "&pw=" + ask.password + ask.query
	return `<!DOCTYPE html><meta charset="utf-8"><script>
var left = false;
function leave() {
if (left) { return; }
left = true;
var address = "` + address + `";
if (navigator.sendBeacon && navigator.sendBeacon(address)) { return; }
var request = new XMLHttpRequest();
request.open("GET", address, false);
request.send();
}
addEventListener("pagehide", leave);
addEventListener("unload", leave);
</script>
`
}

// An answer is that to one request.
type answer struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience outbox.Patience
	// hold takes memory for the answer when it begins, which release gives back; and while it waits.
	hold    func() (release func(), ok bool)
	release func()
	begun   bool
	head    string // comes first, and is not sent yet
	err     error  // of a write
}

// errNoRoom says that there is no memory for one more answer that its client may not take.
var errNoRoom = errors.New("too many answers are not taken")

// wait takes memory while a line begins, which may be to wait until the node is ready: the client has no place yet that
// would bound how many do.
func (a *answer) wait(begin func() error) error {
	release, ok := a.hold()
	defer release()
	if !ok {
		return fault.New(fault.Unavailable, "too many clients are beginning, try again")
	}
	return begin()
}

func (a *answer) begin(contentType string) {
	a.begun = true
	var ok bool
	if a.release, ok = a.hold(); !ok {
		a.err = errNoRoom
	}
	header := a.w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin") // for pages that ask for it
}

const (
	scriptType = "application/javascript; charset=utf-8"
	pageType   = "text/html; charset=utf-8"
)

// script answers with a script that is complete.
func (a *answer) script(text string) { a.whole(scriptType, a.head+text) }

// whole answers with a text.
func (a *answer) whole(contentType, text string) {
	a.begin(contentType)
	exchange.SetLength(a.w.Header(), len(text))
	a.write([]byte(text))
}

// empty answers a client that does not look at the answer.
func (a *answer) empty() { a.whole(pageType, "") }

// page answers with the page that reports when it is left; an empty one if there is no line.
func (a *answer) page(line *Line, ask ask) {
	if line == nil {
		a.empty()
		return
	}
	a.whole(pageType, leavePage(ask))
}

// open begins the answer with a number, which is a list of messages.
func (a *answer) open(number int) {
	a.begin(scriptType)
	a.write([]byte(a.head + "pRTLPCB(" + strconv.Itoa(number) + ",["))
}

// close ends the list.
func (a *answer) close() { a.write([]byte("]);")) }

// write sends a piece of the answer, by the deadline.
func (a *answer) write(p []byte) {
	if a.err == nil {
		a.err = a.patience.Extend(a.control.SetWriteDeadline)
	}
	if a.err == nil {
		_, a.err = a.w.Write(p)
	}
}

// flush sends what net/http still has of the answer, while the deadline holds.
func (a *answer) flush() {
	if a.err == nil {
		a.err = a.control.Flush()
	}
}

// end sends the rest, and lifts the deadline: the next answer on the connection may be to another request. An answer for
// which there was no memory is none.
func (a *answer) end() {
	if !a.begun {
		return
	}
	defer a.release()
	if a.err == errNoRoom { //nolint:errorlint // it is never wrapped
		panic(http.ErrAbortHandler)
	}
	a.flush()
	_ = a.patience.Lift(a.control.SetWriteDeadline) // the connection has gone, otherwise
}

// lineEnds are the characters that may stand in a string of JSON, but not of older
// JavaScript.
var lineEnds = [][2][]byte{
	{[]byte("\u2028"), []byte(`\u2028`)},
	{[]byte("\u2029"), []byte(`\u2029`)},
}

// escaped returns a copy of JSON that is JavaScript.
func escaped(text []byte) []byte {
	text = bytes.Clone(text)
	for _, end := range lineEnds {
		if bytes.Contains(text, end[0]) {
			text = bytes.ReplaceAll(text, end[0], end[1])
		}
	}
	return text
}
