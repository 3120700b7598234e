package conformance_test

import (
	"strings"
	"testing"
)

// specSentences is how many sentences the specification has, a row of a table
// that says one thing being one. Each stands in these files exactly once, proved
// or pending.
const specSentences = 174

// ours are the sources of headings that are not in the specification.
var ours = []string{"Values", "Requests", "Streams", "Dialects", "Rules", "Texts", "Clients"}

const inPart = " (in part)"

// TestSentences holds the headings to account: nothing is left out silently, and
// nothing is called proved that has no requests.
func TestSentences(t *testing.T) {
	proved := map[string]string{} // source of the heading -> its sentence
	var partly, pending []testCase
	for _, s := range readScripts(t) {
		for _, c := range s.cases {
			source, sentence := c.cut()
			switch {
			case s.file != pendingFile && len(c.steps) == 0:
				t.Errorf("%s:%d: nothing proves %s", s.file, c.line, c.heading)
			case s.file != pendingFile && (proved[source] != "" || strings.HasSuffix(source, inPart)):
				t.Errorf("%s:%d: %s stands in another place too", s.file, c.line, source)
			case s.file != pendingFile:
				proved[source] = sentence
			case len(c.steps) > 0 || !hasReason(c):
				t.Errorf("%s:%d: %s has requests, or no reason", s.file, c.line, source)
			case strings.HasSuffix(source, inPart):
				partly = append(partly, c)
			default:
				pending = append(pending, c)
			}
		}
	}
	specProved, specPending := 0, 0
	for source := range proved {
		if isOfSpec(source) {
			specProved++
		}
	}
	for _, c := range pending {
		source, _ := c.cut()
		if proved[source] != "" {
			t.Errorf("%s is both proved and pending", source)
		}
		if isOfSpec(source) {
			specPending++
		}
	}
	for _, c := range partly {
		source, _ := c.cut()
		if proved[strings.TrimSuffix(source, inPart)] == "" {
			t.Errorf("%s is pending in part, but no part is proved", source)
		}
	}
	if specProved+specPending != specSentences {
		t.Errorf("%d sentences of the specification are proved and %d pending, want %d in all", specProved, specPending, specSentences)
	}
	t.Logf("of %d sentences of the specification %d are proved and %d pending; of ours %d are proved and %d pending; %d of the proved ones are pending in part",
		specSentences, specProved, specPending, len(proved)-specProved, len(pending)-specPending, len(partly))
}

// cut splits a heading into where the sentence is from and the sentence.
func (c testCase) cut() (source, sentence string) {
	source, sentence, _ = strings.Cut(c.heading, `: "`)
	return source, strings.TrimSuffix(sentence, `"`)
}

func isOfSpec(source string) bool {
	for _, o := range ours {
		if strings.HasPrefix(source, o) {
			return false
		}
	}
	return true
}

// hasReason reports whether a pending sentence says why it is.
func hasReason(c testCase) bool {
	for _, line := range c.prose {
		if strings.HasPrefix(line, "Not proved yet: ") || strings.HasPrefix(line, "Nothing to prove") {
			return true
		}
	}
	return false
}
