package expr_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// A scene is what the expressions of testdata/eval.txt see.
type scene struct {
	t   *testing.T
	env expr.Env
}

// set changes the scene, and reports false for a line that does not say how.
func (s *scene) set(text string) bool {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "auth":
		s.env.Auth = decode(s.t, rest)
	case "data":
		s.env.Before = nodeData{decode(s.t, rest)}
	case "new":
		s.env.After = nodeData{decode(s.t, rest)}
	case "path":
		s.env.Path = path(s.t, rest)
		s.env.Wildcards = []string{s.env.Path.Last()}
	case "query":
		s.env.Query = queryOf(s.t, rest)
	default:
		return false
	}
	return true
}

func queryOf(t *testing.T, text string) (q expr.Query) {
	orders := map[string]expr.Order{
		"orderByKey": expr.OrderByKey, "orderByValue": expr.OrderByValue,
		"orderByPriority": expr.OrderByPriority, "orderByChild": expr.OrderByChild,
	}
	for _, part := range strings.Fields(text) {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "orderByChild":
			q.OrderBy, q.Child = expr.OrderByChild, path(t, value)
		case "startAt":
			q.StartAt = decode(t, value).Leaf()
		case "endAt":
			q.EndAt = decode(t, value).Leaf()
		case "equalTo":
			q.EqualTo = decode(t, value).Leaf()
		case "limitToFirst":
			q.LimitToFirst, _ = strconv.Atoi(value)
		case "limitToLast":
			q.LimitToLast, _ = strconv.Atoi(value)
		default:
			q.OrderBy = orders[name]
		}
	}
	return q
}

// outcome spells the end of an evaluation.
func outcome(result bool, err error) string {
	if _, ok := errors.AsType[*expr.Failure](err); ok {
		return "fails"
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return strconv.FormatBool(result)
}

func TestEval(t *testing.T) {
	s := &scene{t: t, env: expr.Env{NowMillis: 1_500_000_000_000}}
	for _, l := range lines(t, "eval.txt") {
		arrow := strings.LastIndex(l.text, " => ")
		if arrow < 0 {
			if !s.set(l.text) {
				t.Fatalf("%s: neither a scene nor an expression", l.where)
			}
			continue
		}
		source, want := l.text[:arrow], l.text[arrow+4:]
		e, problems := expr.Compile(source, at(expr.Write))
		if problems != nil {
			t.Errorf("%s: %s: %s", l.where, source, errorText(problems))
			continue
		}
		if got := outcome(e.Eval(&s.env)); got != want {
			t.Errorf("%s: %s => %s, want %s", l.where, source, got, want)
		}
	}
}

func TestConstant(t *testing.T) {
	for source, want := range map[string]string{
		"true": "true true", " (false) ": "false true", "!false": "false false", "auth != null": "false false",
	} {
		value, ok := compile(t, source, at(expr.Read)).Constant()
		if got := strconv.FormatBool(value) + " " + strconv.FormatBool(ok); got != want {
			t.Errorf("Constant of %q = %s, want %s", source, got, want)
		}
	}
}

func TestUsedNow(t *testing.T) {
	for source, want := range map[string]bool{
		"now > 0": true, "auth != null && now > 0": false, "auth == null || now > 0": false, "data.exists()": false,
	} {
		env := &expr.Env{Before: nodeData{}}
		if _, err := compile(t, source, at(expr.Read)).Eval(env); err != nil || env.UsedNow != want {
			t.Errorf("%s: UsedNow = %v, %v, want %v", source, env.UsedNow, err, want)
		}
	}
}

// TestUsedDrawn: an evaluation that looked at a wildcard which stands for the drawn key
// says so.
func TestUsedDrawn(t *testing.T) {
	for _, c := range []struct {
		source, drawn string
		want          bool
	}{
		{"$id == 'x'", "key", true},
		{"root.child('a/' + $id).exists()", "key", true},
		{"$id.length > 2 || true", "key", true},
		{"true || $id == 'x'", "key", false},
		{"data.exists()", "key", false},
		{"$id == 'x'", "other", false},
		{"$id == 'x'", "", false},
	} {
		env := &expr.Env{Before: nodeData{}, Wildcards: []string{"key"}, Drawn: c.drawn}
		if _, err := compile(t, c.source, at(expr.Read)).Eval(env); err != nil || env.UsedDrawn != c.want {
			t.Errorf("%s with the drawn key %q: UsedDrawn = %v, %v, want %v", c.source, c.drawn, env.UsedDrawn, err, c.want)
		}
	}
}

// TestInnermostWildcardCounts: two wildcards of one name on the way down.
func TestInnermostWildcardCounts(t *testing.T) {
	e := compile(t, "$x == 'inner'", expr.Scope{Wildcards: []string{"$x", "$x"}})
	if ok, err := e.Eval(&expr.Env{Wildcards: []string{"outer", "inner"}}); !ok || err != nil {
		t.Errorf("$x == 'inner' is %v, %v, want true", ok, err)
	}
}

// brokenData fails to read.
type brokenData struct{}

var errDisk = errors.New("disk on fire")

func (brokenData) Look(tree.Path) (leaf, priority tree.Leaf, err error) {
	return leaf, priority, errDisk
}
func (brokenData) Kind(tree.Path) (tree.Kind, error)     { return tree.String, errDisk }
func (brokenData) Priority(tree.Path) (tree.Leaf, error) { return tree.Leaf{}, errDisk }
func (brokenData) Exists(tree.Path) (bool, error)        { return true, errDisk }

// TestDataErrorsAreNotFailures: a disk error must never look like a rule that
// is false, let alone one that is true.
func TestDataErrorsAreNotFailures(t *testing.T) {
	for _, source := range []string{
		"data.exists()", "!data.exists()", "data.val() == null", "data.val() != 1", "data.getPriority() != 1",
		"data.hasChildren()", "data.hasChildren(['a'])", "data.hasChild('a')", "data.isString()",
		"data.exists() || true", "true && data.exists()", "(data.exists() ? true : true)",
		"data.val() + 'a' != 'b'", "-data.val() != 1", "data.val().length != 1", "data.child(data.val()).exists()",
		"data.val().matches(/a/)", "'a'.contains(data.val())", "'a'.replace(data.val(), 'b') != 'a'", "data.val() < 1",
	} {
		ok, err := compile(t, source, at(expr.Read)).Eval(&expr.Env{Before: brokenData{}})
		if ok || !errors.Is(err, errDisk) {
			t.Errorf("%s over a broken disk = %v, %v, want that error", source, ok, err)
		}
	}
}
