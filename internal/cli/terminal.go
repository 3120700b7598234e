package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Terminal writes text to a terminal. What clients have stored, what servers
// answer and what files are called may hold characters that make a terminal do
// something: move the cursor, set the title, answer as if the user typed, or show
// text in another order than it has. They are shown as \u001b, which is also what
// JSON calls them. Pipes and files get the bytes as they are, without a Terminal.
type Terminal struct {
	mu   sync.Mutex // commands write from several goroutines
	w    io.Writer
	rest []byte // the beginning of a character that is not whole yet
}

// NewTerminal returns a Terminal that writes to w. Its owner calls End.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Guard puts a Terminal before those of the streams that a person looks at. The
// result must be called when the command is done.
func Guard(isTerminal func(stream any) bool, streams ...*io.Writer) (done func()) {
	var terminals []*Terminal
	for _, stream := range streams {
		if isTerminal(*stream) {
			t := NewTerminal(*stream)
			terminals = append(terminals, t)
			*stream = t
		}
	}
	return func() {
		for _, t := range terminals {
			t.End()
		}
	}
}

// IsTerminal reports whether a person sits at a stream of the process.
func IsTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = Unguarded(w)
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns how many characters a line of the terminal at a stream has, 0 where that is not known.
func Width(stream io.Writer) int {
	f, ok := Unguarded(stream).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Unguarded returns a stream for what the command itself sends to a terminal: to
// draw over a line, or the whole screen. All other text in it must be Visible.
func Unguarded(stream io.Writer) io.Writer {
	if t, ok := stream.(*Terminal); ok {
		return t.w
	}
	return stream
}

// Write implements io.Writer.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := append(t.rest, p...)
	whole := len(text)
	for i := 1; i <= min(utf8.UTFMax-1, len(text)); i++ {
		if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				whole -= i
			}
			break
		}
	}
	_, err := io.WriteString(t.w, escaped(string(text[:whole]), "\n\t"))
	t.rest = append([]byte(nil), text[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// End writes what is left of a character that never became whole.
func (t *Terminal) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	Say(t.w, escaped(string(t.rest), ""))
	t.rest = nil
}

// Visible returns a text of which a terminal shows every character on one line, and
// does nothing else.
func Visible(text string) string { return escaped(text, "") }

// escaped escapes what a terminal does not just show, but for some characters.
func escaped(text, keep string) string {
	if strings.IndexFunc(text, func(r rune) bool { return acts(r) && !strings.ContainsRune(keep, r) }) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case acts(r) && !strings.ContainsRune(keep, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// acts reports whether a character may do something to a terminal, or to the order of
// the text around it. A byte that is not UTF-8 may be a control by itself.
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// Say writes to a stream where a failure could be reported to nobody.
func Say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// A Line is a line on a terminal that is drawn over. It is for one goroutine at a
// time.
type Line struct {
	w     io.Writer
	width int
}

// NewLine returns a line that is drawn on a stream.
func NewLine(w io.Writer) *Line { return &Line{w: w} }

// Draw shows a text instead of the last one.
func (l *Line) Draw(text string) {
	text = Visible(text)
	width := utf8.RuneCountInString(text)
	Say(Unguarded(l.w), "\r"+text+strings.Repeat(" ", max(0, l.width-width)))
	l.width = width
}

// Clear takes the line away.
func (l *Line) Clear() {
	if l.width > 0 {
		Say(Unguarded(l.w), "\r"+strings.Repeat(" ", l.width)+"\r")
		l.width = 0
	}
}
