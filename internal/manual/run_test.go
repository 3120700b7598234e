//go:build linux

package manual_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/manual"
	"github.com/livetree/livetree/internal/proof"
)

// The commands of every page, and of the README, are run: in order, each page in a directory of
// its own, by bash, with the command that is built from this source. A block of code is run if
// its language is
//
//	sh       every line; all must succeed
//	console  lines that begin with "$ ", and "> " if they go on; the lines after them are what
//	         they print. In these, "…" stands for anything in a line, and alone for any lines
//
// Comments of HTML in front of a block say more:
//
//	<!-- not run: REASON -->   it is left out, and counted
//	<!-- slow -->              it is left out without the flag -slow
//	<!-- background -->        it goes on while the rest of the page is run; what it printed is
//	                           compared in the end
//	<!-- together -->          each line goes on, and they wait for each other
//	<!-- exits N -->           its last command ends with this code
//	<!-- file: NAME -->        the block is the content of a file
//	<!-- run: COMMAND -->      a command that readers do not see, at this place
//
// A hidden command may also be "start FLAGS", which runs a server until the page ends or "stop".
var (
	command  = proof.NewCommand()
	runSlow  = flag.Bool("slow", false, "also run the commands of the manual that are marked as slow")
	onlyPage = flag.String("page", "", "run the commands of this page only")
)

func TestMain(m *testing.M) {
	proof.SideBySide(8)
	os.Exit(command.Run(m))
}

// A step is something that a page has run.
type step struct {
	line       int
	command    string
	file       string // the step is a file with this name, and command is its content
	output     string
	compared   bool
	background bool
	together   bool
	exit       int
}

var (
	promptLine = regexp.MustCompile(`(?m)^\$ `)
	commandish = regexp.MustCompile(`(?m)^\s*(?:\$ )?(?:livetree|curl|tree) `)
)

// A reading gathers the steps of a page.
type reading struct {
	t     *testing.T
	topic string
	steps []step
	left  map[string]int // how many blocks are not run, by the reason
	marks []string       // the comments in front of the next block
}

func (r *reading) blocks(blocks []manual.Block) {
	for _, b := range blocks {
		switch b.Kind {
		case manual.Comment:
			if hidden, ok := strings.CutPrefix(b.Text, "run:"); ok {
				r.steps = append(r.steps, step{line: b.Line, command: strings.TrimSpace(hidden)})
			} else {
				r.marks = append(r.marks, b.Text)
			}
			continue
		case manual.Code:
			r.code(b)
		case manual.List:
			for _, inside := range b.Items {
				r.blocks(inside)
			}
		case manual.Heading, manual.Paragraph, manual.Table:
		}
		r.marks = nil
	}
}

func (r *reading) code(b manual.Block) {
	proto := step{line: b.Line}
	for _, mark := range r.marks {
		name, value, _ := strings.Cut(mark, ":")
		switch value = strings.TrimSpace(value); {
		case name == "not run" && value != "":
			r.left[value]++
			return
		case name == "slow" && !*runSlow:
			r.left["slow"]++
			return
		case name == "background":
			proto.background = true
		case name == "together":
			proto.together = true
		case name == "file":
			proto.file, proto.command = value, b.Text+"\n"
			r.steps = append(r.steps, proto)
			return
		case strings.HasPrefix(name, "exits "):
			proto.exit, _ = strconv.Atoi(strings.TrimPrefix(name, "exits "))
		}
	}
	switch b.Language {
	case "sh":
		proto.command = b.Text
		r.steps = append(r.steps, proto)
	case "console":
		r.console(b, proto)
	case "":
		if commandish.MatchString(b.Text) {
			r.t.Errorf("%s, line %d: a block with commands must say how it is run: sh or console", r.topic, b.Line)
		}
	}
}

// console cuts a block into its commands, each with what it prints.
func (r *reading) console(b manual.Block, proto step) {
	all := promptLine.Split(b.Text, -1)
	if all[0] != "" {
		r.t.Errorf("%s, line %d: the block begins with output", r.topic, b.Line)
	}
	for i, text := range all[1:] {
		s := proto
		if i+2 < len(all) {
			s.exit = 0
		}
		first, rest, _ := strings.Cut(text, "\n")
		s.command, s.compared = first, true
		for strings.HasPrefix(rest, "> ") {
			more, after, _ := strings.Cut(rest[2:], "\n")
			s.command, rest = s.command+"\n"+more, after
		}
		s.output = rest
		r.steps = append(r.steps, s)
	}
}

// columns are where a table that a command prints has more space than the page shows.
var columns = regexp.MustCompile(`  +`)

// matches reports whether a text is what a page shows.
func matches(shown, text string) bool {
	shown, text = columns.ReplaceAllString(shown, "  "), columns.ReplaceAllString(text, "  ")
	var pattern strings.Builder
	pattern.WriteString(`(?s)^\s*`)
	lines := strings.Split(strings.TrimSpace(shown), "\n")
	for i, line := range lines {
		end := `[ \t]*\n`
		if i == len(lines)-1 {
			end = `\s*$`
		}
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`.*`)
			if i == len(lines)-1 {
				pattern.WriteString(`$`)
			}
			continue
		}
		for n, part := range strings.Split(strings.TrimRight(line, " "), "…") {
			if n > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(end)
	}
	return regexp.MustCompile(pattern.String()).MatchString(text)
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		shown, text string
		want        bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a\nb", "a\nc\n", false},
		{"a", "a\nb\n", false},
		{"", "something", false},
		{"", "\n", true},
		{"on …:9000", "on https://127.0.0.1:9000", true},
		{"on …", "on one\nand two", false},
		{"first\n…", "first\nsecond\nthird\n", true},
		{"…\nlast", "first\nlast", true},
		{"…\nlast", "first\nlast\nmore", false},
		{"a.c", "abc", false},
		{"a  b", "a     b", true},
		{"a  b", "a b", false},
	} {
		if got := matches(test.shown, test.text); got != test.want {
			t.Errorf("that a page shows %q and %q is printed is %t, want %t", test.shown, test.text, got, test.want)
		}
	}
}

// TestCommandsOfThePages: see above.
func TestCommandsOfThePages(t *testing.T) {
	needs(t, "bash", "curl", "openssl", "gzip")
	binary, err := command.File()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"README": string(readme)}
	for _, p := range pages(t) {
		texts[p.Topic] = p.Text
	}
	run, left := 0, map[string]int{}
	for topic, text := range texts {
		if *onlyPage != "" && *onlyPage != topic {
			continue
		}
		r := reading{t: t, topic: topic, left: left}
		r.blocks(manual.Parse(text))
		run += len(r.steps)
		if len(r.steps) == 0 {
			continue
		}
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			newShell(t, filepath.Dir(binary)).run(r.steps)
		})
	}
	t.Logf("%d steps of the manual are run; blocks that are not:", run)
	for reason, count := range left {
		t.Logf("%4d %s", count, reason)
	}
	if *onlyPage == "" && run < 120 {
		t.Errorf("only %d steps are found", run)
	}
}
