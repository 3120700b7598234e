package rules_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// The files testdata/*.txt are scripts. A block is a command with its input, a
// line of four dashes, and what the command says; an empty line ends it.
//
//	rules                    the document, or only what is behind "rules":
//	data                     the tree
//	read PATH [as=JSON] [query…] [+reads] [+now] [+trace]
//	put|patch|priority|delete PATH …
//	indexes PATH | above PATH | below PATH | patterns | strict | explain
//
// Writes change the tree if they are allowed and their command ends in "!".

var rewrite = flag.Bool("rewrite", false, "write what the scripts say into their files")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, ruleset: &rules.Ruleset{}}
	var out []string
	for block := range strings.SplitSeq(strings.TrimRight(string(content), "\n"), "\n\n") {
		head, want, ok := strings.Cut(block, "\n----\n")
		if !ok { // nothing but a comment
			out = append(out, block)
			continue
		}
		lines := strings.Split(head, "\n")
		start := slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "#") })
		got := s.do(lines[start], strings.Join(lines[start+1:], "\n"))
		if got != want && !*rewrite {
			t.Errorf("%s: %s\n%s\nsays\n%s\nwant\n%s", file, lines[start], strings.Join(lines[start+1:], "\n"), got, want)
		}
		out = append(out, head+"\n----\n"+got)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A script is the state of one file.
type script struct {
	t       *testing.T
	source  string
	ruleset *rules.Ruleset
	data    tree.Node
}

// do runs a command and returns what it says.
func (s *script) do(command, input string) string {
	words := strings.Fields(command)
	at := tree.Path{}
	if len(words) > 1 && words[0] != "rules" {
		at = path(s.t, words[1])
	}
	switch words[0] {
	case "rules":
		return s.compile(input)
	case "explain":
		_, err := rules.Compile(input)
		problems, _ := errors.AsType[rules.Problems](err)
		return strings.TrimRight(problems.Explain(input), "\n")
	case "data":
		s.data = decode(s.t, input)
		return "ok"
	case "read":
		return s.read(at, words[2:])
	case "put", "delete", "patch", "priority":
		return s.write(words[0], at, input, words[2:])
	case "strict":
		return string(s.ruleset.Strict())
	case "opens":
		read, write := s.ruleset.OpensRoot()
		return fmt.Sprintf("read %v, write %v", read, write)
	case "patterns":
		return s.patterns()
	}
	s.t.Fatalf("unknown command %q", words[0])
	return ""
}

func (s *script) compile(input string) string {
	if !strings.Contains(input, `"rules"`) {
		input = `{"rules":` + input + `}`
	}
	r, err := rules.Compile(input)
	if err != nil {
		return err.Error()
	}
	s.source, s.ruleset = input, r
	return "ok"
}

func (s *script) request(options []string) rules.Request {
	req := rules.Request{NowMillis: nowMillis, Trace: slices.Contains(options, "+trace")}
	for _, o := range options {
		if text, ok := strings.CutPrefix(o, "as="); ok {
			req.Auth = decode(s.t, text)
		}
	}
	return req
}

func (s *script) read(at tree.Path, options []string) string {
	var q rules.Query
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "orderByKey":
			q.OrderBy = expr.OrderByKey
		case "orderByChild":
			q.OrderBy, q.Child = expr.OrderByChild, path(s.t, value)
		case "equalTo":
			q.EqualTo = decode(s.t, value).Leaf()
		case "limitToFirst":
			q.LimitToFirst = int(decode(s.t, value).Leaf().Int())
		}
	}
	d, err := s.ruleset.Read(s.request(options), rules.InNode(s.data), at, q)
	return s.decision(d, err, options)
}

func (s *script) write(verb string, at tree.Path, input string, options []string) string {
	w := tree.Put(at, tree.Node{})
	switch verb {
	case "put":
		w = tree.Put(at, decode(s.t, input))
	case "priority":
		w = tree.PutPriority(at, decode(s.t, input))
	case "patch":
		var err error
		if w, err = tree.DecodePatch(strings.NewReader(input), at, tree.DecodeOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	w, err := tree.Resolve(w, nowMillis, rules.InNode(s.data))
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := s.ruleset.Write(s.request(options), rules.InNode(s.data), w)
	if d.Allowed && slices.Contains(options, "!") {
		s.data = after(s.data, w)
	}
	return s.decision(d, err, options)
}

// decision spells a decision, with what the options ask for.
func (s *script) decision(d rules.Decision, err error, options []string) string {
	if err != nil {
		return "error: " + err.Error()
	}
	text := "denied"
	if d.Allowed {
		text = "allowed"
	}
	if d.Rule.Line > 0 {
		text += fmt.Sprintf(": %s %s (%d:%d)", d.Rule.Path, d.Rule.Kind, d.Rule.Line, d.Rule.Column)
	}
	if d.OverBudget {
		text += ", over budget"
	}
	if slices.Contains(options, "+now") {
		text += fmt.Sprintf("\nnow: %v", d.UsedNow)
	}
	if slices.Contains(options, "+reads") {
		text += fmt.Sprintf("\nreads: %v", d.Reads)
	}
	if slices.Contains(options, "+trace") {
		text += "\n" + d.Trace
	}
	return text
}

// patterns prints the indexes with the locations that they are for.
func (s *script) patterns() string {
	var all []string
	for _, p := range s.ruleset.IndexPatterns() {
		text := fmt.Sprintf("/%s: %s", strings.Join(p.Keys, "/"), p.Index)
		if p.Expires {
			text += " expires"
		}
		for _, except := range p.Except {
			if len(except) > 0 {
				text += fmt.Sprintf(", $ is not %v", except)
			}
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "\n")
}
