package cli_test

import (
	"bytes"
	"io"
	"os"
	"testing"
	"unicode"

	"github.com/livetree/livetree/internal/cli"
)

func TestTerminalEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n": "a\tb\n",
		"größer 日本 👩‍👩‍👧 עברית": "größer 日本 👩‍👩‍👧 עברית",
		"\x1b[31m":                 `\u001b[31m`,
		"one\rtwo":                 `one\u000dtwo`,
		"\u009b\u007f\x00":         `\u009b\u007f\u0000`,
		"a\u202eb\u2066c\u2028":    `a\u202eb\u2066c\u2028`,
		"\x9b31m \xff \xe2\x82":    `\x9b31m \xff \xe2\x82`,
		"{\"k\":\"\u0085\u202c\"}": `{"k":"\u0085\u202c"}`,
	} {
		for size := 1; size <= len(text); size++ { // in pieces of any size
			var out bytes.Buffer
			term := cli.NewTerminal(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if m, err := io.WriteString(term, rest[:n]); m != n || err != nil {
					t.Errorf("Write = %d, %v", m, err)
				}
				rest = rest[n:]
			}
			term.End()
			if out.String() != want {
				t.Errorf("%q in pieces of %d shows %q, want %q", text, size, out.String(), want)
			}
		}
	}
}

// TestVisible: a command that draws the screen by itself shows other texts so.
func TestVisible(t *testing.T) {
	var out bytes.Buffer
	term := cli.NewTerminal(&out)
	if cli.Unguarded(term) != io.Writer(&out) || cli.Unguarded(os.Stdout) != io.Writer(os.Stdout) {
		t.Error("Unguarded does not give the stream itself")
	}
	const hostile = "\x1b]0;title\x07 \x7f \u009b31m \u202egnp.exe \u2066x\u2069 \u061c \u200f \u2028\n\t"
	for _, r := range cli.Visible(hostile) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' {
			t.Errorf("Visible(%q) holds %U", hostile, r)
		}
	}
	if got := cli.Visible("a\nb"); got != `a\u000ab` {
		t.Errorf("Visible keeps lines: %q", got)
	}
}

// TestLine: a shorter text leaves nothing of a longer one, and an end leaves nothing.
func TestLine(t *testing.T) {
	var out bytes.Buffer
	line := cli.NewLine(cli.NewTerminal(&out))
	line.Clear()
	line.Draw("größer\x1b")
	line.Draw("ab")
	line.Clear()
	line.Clear()
	if got, want := out.String(), "\rgrößer\\u001b\rab          \r  \r"; got != want {
		t.Errorf("the line draws %q, want %q", got, want)
	}
}
