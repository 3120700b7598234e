package console

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Label names a server in the console, so that nobody takes production for a
// trial.
type Label struct {
	Text  string `json:"text"`
	Color string `json:"color"`
}

// Colors are those that a label can have.
var Colors = []string{"red", "orange", "yellow", "green", "blue", "purple", "grey"}

// maxLabel bounds the characters of a label.
const maxLabel = 40

// ParseLabel reads a label such as "PRODUCTION,red". Without a colour it is grey; the
// empty text is no label.
func ParseLabel(text string) (Label, error) {
	if text == "" {
		return Label{}, nil
	}
	l := Label{Text: text, Color: "grey"}
	if before, color, ok := strings.Cut(text, ","); ok {
		l = Label{Text: strings.TrimSpace(before), Color: strings.ToLower(strings.TrimSpace(color))}
	}
	if !slices.Contains(Colors, l.Color) {
		return Label{}, fmt.Errorf("the colour of a label must be one of %s", strings.Join(Colors, ", "))
	}
	if n := utf8.RuneCountInString(l.Text); n == 0 || n > maxLabel || strings.ContainsFunc(l.Text, isUnfit) {
		return Label{}, fmt.Errorf("a label must be 1 to %d characters that can be printed, such as PRODUCTION,red", maxLabel)
	}
	return l, nil
}

func isUnfit(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// String returns what ParseLabel reads.
func (l Label) String() string {
	if l.Text == "" {
		return ""
	}
	return l.Text + "," + l.Color
}

// Set makes it the label that ParseLabel reads. With Type it lets a label be a flag.
func (l *Label) Set(text string) error {
	parsed, err := ParseLabel(text)
	*l = parsed
	return err
}

// Type implements pflag.Value.
func (l *Label) Type() string { return "text,colour" }
