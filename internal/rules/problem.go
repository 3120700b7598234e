package rules

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds how many problems of a document are reported.
const maxProblems = 50

// A Problem is something that is wrong with a rules document.
type Problem struct {
	Line, Column int // of the first byte concerned, both from 1
	Message      string
}

// String returns the problem as an upload reports it.
func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Problems is why a document was refused: all that was found, in the order of
// the text, at most maxProblems.
type Problems []Problem

// Error returns the problems, a line each.
func (p Problems) Error() string {
	var lines []string
	for _, problem := range p {
		lines = append(lines, problem.String())
	}
	return strings.Join(lines, "\n")
}

// Explain returns the problems for people, each with its line of the source and
// a caret below the place.
func (p Problems) Explain(source string) string {
	lines := strings.Split(source, "\n")
	var b strings.Builder
	for _, problem := range p {
		fmt.Fprintf(&b, "%s\n", problem)
		if problem.Line > len(lines) {
			continue
		}
		line := strings.TrimRight(lines[problem.Line-1], "\r")
		before := strings.Map(func(r rune) rune {
			if r == '\t' {
				return r // as wide as in the line above
			}
			return ' '
		}, line[:min(problem.Column-1, len(line))])
		fmt.Fprintf(&b, "%s\n%s^\n", line, before)
	}
	return b.String()
}

// sorted returns the problems in the order of the text, cut to maxProblems.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return p[:min(len(p), maxProblems)]
}

// A lineIndex turns offsets into lines and columns.
type lineIndex []int // offsets at which lines start

func newLineIndex(source string) lineIndex {
	starts := lineIndex{0}
	for i := range len(source) {
		if source[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (l lineIndex) problem(offset int, format string, args ...any) Problem {
	line, found := slices.BinarySearch(l, offset)
	if !found {
		line-- // the line that starts before
	}
	return Problem{line + 1, offset - l[line] + 1, fmt.Sprintf(format, args...)}
}
