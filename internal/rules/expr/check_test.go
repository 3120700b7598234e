package expr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
)

var kinds = map[string]expr.Kind{"read": expr.Read, "write": expr.Write, "validate": expr.Validate}

func TestMessages(t *testing.T) {
	all := lines(t, "messages.txt")
	for i := 0; i < len(all); {
		rule := all[i]
		kind, source, _ := strings.Cut(rule.text, " ")
		var want []string
		for i++; i < len(all) && strings.HasPrefix(all[i].text, "  "); i++ {
			want = append(want, strings.TrimSpace(all[i].text))
		}
		if _, ok := kinds[kind]; !ok || want == nil {
			t.Fatalf("%s: not a rule with its messages", rule.where)
		}
		_, errors := expr.Compile(source, at(kinds[kind]))
		if got := errorText(errors); got != strings.Join(want, "\n") {
			t.Errorf("%s: %s says\n%s\nwant\n%s", rule.where, source, got, strings.Join(want, "\n"))
		}
	}
}

// A typePlace is a template of testdata/types.txt.
type typePlace struct {
	where, template string
	accepts         []string
	messages        map[string]string // by sample; "" is for all others
}

// TestEveryTypeInEveryPlace fills every sample into every template.
func TestEveryTypeInEveryPlace(t *testing.T) {
	samples, always, places := typeTable(t)
	count := 0
	for _, p := range places {
		for _, sample := range samples {
			name, source := sample[0], strings.ReplaceAll(p.template, "@", "("+sample[1]+")")
			want := "ok"
			if !slices.Contains(p.accepts, name) {
				want = p.messages[""]
				for _, more := range []map[string]string{p.messages, always} {
					if message, ok := more[name]; ok {
						want = message
					}
				}
			}
			_, errors := expr.Compile(source, at(expr.Read))
			got := "ok"
			if errors != nil {
				got = errors[0].Message
			}
			if count++; got != want {
				t.Errorf("%s: %s says %q, want %q", p.where, source, got, want)
			}
		}
	}
	if want := 17 * 39; count != want {
		t.Errorf("%d expressions, want %d", count, want)
	}
}

func typeTable(t *testing.T) (samples [][2]string, always map[string]string, places []*typePlace) {
	always = map[string]string{}
	for _, l := range lines(t, "types.txt") {
		word, rest, _ := strings.Cut(l.text, " ")
		rest = strings.TrimSpace(rest)
		names, message, _ := strings.Cut(rest, ": ")
		switch word {
		case "sample":
			name, source, _ := strings.Cut(rest, " ")
			samples = append(samples, [2]string{name, strings.TrimSpace(source)})
		case "always":
			always[names] = message
		case "place":
			places = append(places, &typePlace{where: l.where, template: rest, messages: map[string]string{}})
		case "accepts":
			places[len(places)-1].accepts = strings.Fields(rest)
		case "else:":
			places[len(places)-1].messages[""] = rest
		case "for":
			for _, name := range strings.Fields(names) {
				places[len(places)-1].messages[name] = message
			}
		default:
			t.Fatalf("%s: unknown word %q", l.where, word)
		}
	}
	return samples, always, places
}

func TestDepthIsBounded(t *testing.T) {
	tests := []struct {
		name, source string
		ok           bool
	}{
		{"parentheses", strings.Repeat("(", expr.MaxDepth-1) + "true" + strings.Repeat(")", expr.MaxDepth-1), true},
		{"too many parentheses", strings.Repeat("(", expr.MaxDepth) + "true" + strings.Repeat(")", expr.MaxDepth), false},
		{"too many !", strings.Repeat("!", 100_000) + "true", false},
		{"too many branches", strings.Repeat("true ? true : ", 100_000) + "true", false},
		{"too many brackets", strings.Repeat("[", 100_000), false},
		{"a long ||", "true" + strings.Repeat(" || true", 10_000), true},
		{"a long +", "'a'" + strings.Repeat(" + 'a'", 10_000) + " == 'a'", true},
		{"parents", "data" + strings.Repeat(".parent()", 40) + ".exists()", true},
		{"too many parents", "data" + strings.Repeat(".parent()", 100_000) + ".exists()", false},
	}
	for _, test := range tests {
		if _, errors := expr.Compile(test.source, at(expr.Read)); (errors == nil) != test.ok {
			t.Errorf("%s: %s, want accepted %v", test.name, errorText(errors), test.ok)
		}
	}
}
