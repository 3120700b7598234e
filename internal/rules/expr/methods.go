package expr

import (
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// This file compiles members and calls that come to a value.

// textCode is code that must come to a string.
type textCode func(*Env) (string, error)

// compileText compiles a node of which a string is needed.
func compileText(n node) textCode {
	x := compileValue(n)
	fail := failAt(n, "This is not a string.")
	return func(e *Env) (string, error) {
		v, err := x(e)
		if err == nil && !v.isText() {
			err = fail
		}
		return v.leaf.Text(), err
	}
}

// compileMember compiles .length, a property of query, or a claim.
func compileMember(m *member) valueCode {
	switch m.target.at().typ {
	case TypeQuery:
		return compileQueryValue(m.name)
	case TypeAny:
		if m.index != nil {
			return compileIndex(m)
		}
		if m.name != "length" {
			return compileClaim(m)
		}
	}
	text := compileText(m.target)
	return func(e *Env) (value, error) {
		s, err := text(e)
		if err != nil {
			return value{}, err
		}
		if err := e.spendText(len(s), scanned); err != nil {
			return value{}, err
		}
		return integerOf(length(s)), nil
	}
}

// compileClaim compiles a member of auth or of a claim: null if there is none,
// also where there is nothing to have members.
func compileClaim(m *member) valueCode {
	target, name := compileValue(m.target), m.name
	return func(e *Env) (value, error) {
		v, err := target(e)
		return claimOf(v.node.Child(name)), err
	}
}

// compileIndex compiles claim[expression].
func compileIndex(m *member) valueCode {
	target, index := compileValue(m.target), compileValue(m.index)
	fail := failAt(m, "The index is neither a string nor an integer.")
	return func(e *Env) (value, error) {
		v, err := target(e)
		if err != nil {
			return value{}, err
		}
		i, err := index(e)
		if err != nil {
			return value{}, err
		}
		if !i.isText() && !i.isInteger() {
			return value{}, fail
		}
		return claimOf(v.node.Child(i.text())), e.spend(1)
	}
}

// compileQueryFlag compiles query.orderByKey and its like.
func compileQueryFlag(name string) booleanCode {
	order := map[string]Order{
		"orderByKey": OrderByKey, "orderByValue": OrderByValue, "orderByPriority": OrderByPriority,
	}[name]
	return func(e *Env) (bool, error) { return e.Query.OrderBy == order, nil }
}

func compileQueryValue(name string) valueCode {
	read := queryValues[name]
	return func(e *Env) (value, error) { return leafOf(read(&e.Query)), nil }
}

var queryValues = map[string]func(*Query) tree.Leaf{
	"orderByChild": func(q *Query) tree.Leaf {
		if q.OrderBy != OrderByChild {
			return tree.Leaf{}
		}
		return tree.StringLeaf(strings.TrimPrefix(q.Child.String(), "/"))
	},
	"startAt":      func(q *Query) tree.Leaf { return q.StartAt },
	"endAt":        func(q *Query) tree.Leaf { return q.EndAt },
	"equalTo":      func(q *Query) tree.Leaf { return q.EqualTo },
	"limitToFirst": func(q *Query) tree.Leaf { return limitLeaf(q.LimitToFirst) },
	"limitToLast":  func(q *Query) tree.Leaf { return limitLeaf(q.LimitToLast) },
}

func limitLeaf(limit int) tree.Leaf {
	if limit == 0 {
		return tree.Leaf{}
	}
	return tree.IntegerLeaf(int64(limit))
}

// compileValueCall compiles the methods that return neither a boolean nor a
// snapshot.
func compileValueCall(n *call) valueCode {
	m := n.callee.(*member)
	switch m.name {
	case "val":
		return looking(compileRuleSnapshot(m.target), ruleSnapshot.value)
	case "getPriority":
		return looking(compileRuleSnapshot(m.target), func(s ruleSnapshot) (value, error) {
			priority, err := s.priority()
			return leafOf(priority), err
		})
	case "replace":
		return compileReplace(n, m)
	}
	text, mapping := compileText(m.target), toLower
	if m.name == "toUpperCase" {
		mapping = strings.ToUpper
	}
	return func(e *Env) (value, error) {
		s, err := text(e)
		if err != nil {
			return value{}, err
		}
		if err := e.spendText(len(s), mapped); err != nil {
			return value{}, err
		}
		return textOf(mapping(s)), nil
	}
}

// dottedI is the one letter that package unicode maps to another one in ASCII where JavaScript does not.
const dottedI = "\u0130"

// toLower is strings.ToLower, but keeps the dot of that letter, as JavaScript does: a name that is
// compared in lower case must not pass for another one.
func toLower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, dottedI, "i\u0307"))
}

// looking returns code that looks at the rule snapshot that target comes to.
func looking[T any](target snapshotCode, look func(ruleSnapshot) (T, error)) func(*Env) (T, error) {
	return func(e *Env) (result T, err error) {
		s, err := target(e)
		if err != nil {
			return result, err
		}
		if err := e.spend(lookSteps); err != nil {
			return result, err
		}
		return look(s)
	}
}

// compileReplace compiles replace(), which replaces every occurrence.
func compileReplace(n *call, m *member) valueCode {
	text, old, new := compileText(m.target), compileText(n.args[0]), compileText(n.args[1])
	fail := tooLong(failAt(n, ""))
	return func(e *Env) (value, error) {
		s, err := text(e)
		if err != nil {
			return value{}, err
		}
		before, err := old(e)
		if err != nil {
			return value{}, err
		}
		after, err := new(e)
		if err != nil {
			return value{}, err
		}
		if err := e.spendText(len(s), scanned); err != nil {
			return value{}, err
		}
		// A letter in place of nothing makes many: count before making them.
		times := strings.Count(s, before)
		bytes := len(s) + times*(len(after)-len(before))
		if bytes > MaxStringBytes {
			return value{}, fail
		}
		if err := e.spend(times >> 7); err != nil {
			return value{}, err
		}
		if err := e.spendText(bytes, made); err != nil {
			return value{}, err
		}
		return textOf(strings.ReplaceAll(s, before, after)), nil
	}
}

// compileBooleanCall compiles the methods that return a boolean.
func compileBooleanCall(n *call) booleanCode {
	m := n.callee.(*member)
	if m.target.at().typ != TypeSnapshot {
		return compileStringTest(n, m)
	}
	target := compileRuleSnapshot(m.target)
	switch m.name {
	case "exists":
		return looking(target, ruleSnapshot.exists)
	case "hasChild":
		return looking(compileChild(n, target), ruleSnapshot.exists)
	case "hasChildren":
		if len(n.args) == 0 {
			return looking(target, ruleSnapshot.hasChildren)
		}
		return compileHasChildren(n, target)
	}
	is := map[string]func(tree.Kind) bool{
		"isNumber":  func(k tree.Kind) bool { return k == tree.Integer || k == tree.Double },
		"isString":  func(k tree.Kind) bool { return k == tree.String },
		"isBoolean": func(k tree.Kind) bool { return k == tree.Boolean },
	}[m.name]
	return looking(target, func(s ruleSnapshot) (bool, error) {
		kind, err := s.kind()
		return is(kind), err
	})
}

// compileHasChildren compiles hasChildren([…]). All names are evaluated before
// the first is looked for: one that is not a string fails in any case.
func compileHasChildren(n *call, target snapshotCode) booleanCode {
	items := n.args[0].(*list).items
	if names, ok := literals(items); ok {
		return compileHasLiterals(names, target)
	}
	var names []textCode
	for _, item := range items {
		names = append(names, compileText(item))
	}
	return func(e *Env) (bool, error) {
		s, err := target(e)
		if err != nil {
			return false, err
		}
		keys := make([]string, len(names))
		for i, name := range names {
			if keys[i], err = name(e); err != nil {
				return false, err
			}
		}
		return s.hasAll(e, keys)
	}
}

// literals returns the texts of nodes that are all literal strings.
func literals(items []node) (texts []string, ok bool) {
	for _, item := range items {
		l, ok := item.(*literal)
		if !ok || l.leaf.Kind() != tree.String {
			return nil, false
		}
		texts = append(texts, l.leaf.Text())
	}
	return texts, true
}

// compileHasLiterals is compileHasChildren for names that are known.
func compileHasLiterals(names []string, target snapshotCode) booleanCode {
	return func(e *Env) (bool, error) {
		s, err := target(e)
		if err != nil {
			return false, err
		}
		return s.hasAll(e, names)
	}
}

// hasAll reports whether there is something at each of some paths below s.
func (s ruleSnapshot) hasAll(e *Env, names []string) (bool, error) {
	for _, name := range names {
		if err := e.spend(lookSteps); err != nil {
			return false, err
		}
		if err := e.spendText(len(name), parsed); err != nil {
			return false, err
		}
		if ok, err := s.child(name).exists(); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// compileStringTest compiles the string methods that return a boolean.
func compileStringTest(n *call, m *member) booleanCode {
	text := compileText(m.target)
	if m.name == "matches" {
		return compileMatches(n, text)
	}
	test := map[string]func(s, part string) bool{
		"contains": strings.Contains, "beginsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}[m.name]
	argument := compileText(n.args[0])
	return func(e *Env) (bool, error) {
		s, err := text(e)
		if err != nil {
			return false, err
		}
		part, err := argument(e)
		if err != nil {
			return false, err
		}
		if err := e.spendText(len(s), scanned); err != nil {
			return false, err
		}
		return test(s, part), nil
	}
}

func compileMatches(n *call, text textCode) booleanCode {
	re := n.args[0].(*pattern).regex
	fail := tooLong(failAt(n, ""))
	return func(e *Env) (bool, error) {
		s, err := text(e)
		if err != nil {
			return false, err
		}
		if len(s) > MaxMatchBytes {
			return false, fail
		}
		if err := e.spend(re.steps(len(s))); err != nil {
			return false, err
		}
		if err := e.Charge(re.work(len(s))); err != nil {
			return false, err
		}
		return re.compiled.MatchString(s), nil
	}
}
