package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A transcript is one of the files in wire. README.md describes its form.
type transcript struct {
	file    string
	options []string // of the server
	scenes  []scene
}

// A scene is a heading with what stands below it.
type scene struct {
	line    int
	heading string
	lines   []spoken
}

// A spoken line is a message, or what else happens to connections.
type spoken struct {
	number int
	next   int // the number of the line after it, or after those that belong to it
	verb   string
	text   string
}

// anyOrder is the verb of messages that may come in any order. Adjacent lines are one.
const anyOrder = "<?"

// verbs are what a line may begin with; all but those in bare need a text.
var (
	verbs = []string{"@header", "@open", "@poll", "@take", "@refused", "@use", "@rest", "@indexed", "@restart", "@frame", "@cut", "@end", "@break", ">", "<", anyOrder}
	bare  = []string{"@restart", "@end", "@break"}
)

// isOfFrames reports whether a scene is about frames of websockets, or what an upgrade says.
func (c scene) isOfFrames() bool {
	return slices.ContainsFunc(c.lines, func(l spoken) bool { return slices.Contains([]string{"@frame", "@cut", "@refused"}, l.verb) })
}

func readTranscripts(t *testing.T) []transcript {
	t.Helper()
	files, err := filepath.Glob("wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no transcripts: %v", err)
	}
	var all []transcript
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := parseTranscript(filepath.Base(file), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}

// parseTranscript reads a transcript. Lines that begin with no verb are prose.
func parseTranscript(file, text string) (transcript, error) {
	tr := transcript{file: file}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := tr.add(number, strings.TrimSuffix(line, "\n")); err != nil {
			return transcript{}, fmt.Errorf("wire/%s:%d: %w", file, number, err)
		}
	}
	return tr, nil
}

func (tr *transcript) add(number int, line string) error {
	verb, text, _ := strings.Cut(line, " ")
	switch {
	case verb == "#":
		tr.scenes = append(tr.scenes, scene{line: number, heading: text})
		return nil
	case verb == "@server" && len(tr.scenes) == 0 && tr.options == nil:
		tr.options = strings.Fields(text)
		return nil
	case slices.Contains(verbs, verb):
	case strings.HasPrefix(line, "@"), strings.HasPrefix(line, ">"), strings.HasPrefix(line, "<"), strings.HasPrefix(line, "#"):
		return fmt.Errorf("%s is not known, or not allowed here", verb)
	default:
		return nil
	}
	if len(tr.scenes) == 0 {
		return fmt.Errorf("%s stands before the first heading", verb)
	}
	if (text == "") != slices.Contains(bare, verb) {
		return fmt.Errorf("%s has no text, or one too many", verb)
	}
	last := &tr.scenes[len(tr.scenes)-1]
	if n := len(last.lines); verb == anyOrder && n > 0 && last.lines[n-1].verb == anyOrder && last.lines[n-1].next == number {
		last.lines[n-1].text += "\n" + text
		last.lines[n-1].next++
		return nil
	}
	last.lines = append(last.lines, spoken{number, number + 1, verb, text})
	return nil
}
