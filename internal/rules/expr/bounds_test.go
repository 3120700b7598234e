package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// evalOver evaluates a rule over one string, and returns how it failed.
func evalOver(t *testing.T, source, text string) *expr.Failure {
	t.Helper()
	data := nodeData{tree.LeafNode(tree.StringLeaf(text))}
	_, err := compile(t, source, at(expr.Read)).Eval(&expr.Env{Before: data})
	failure, ok := errors.AsType[*expr.Failure](err)
	if err != nil && !ok {
		t.Fatalf("%.60s: %v", source, err)
	}
	return failure
}

// TestEvaluationIsBounded: what would grow beyond all bounds is given up, and
// says so; what is merely large is not.
func TestEvaluationIsBounded(t *testing.T) {
	const mib = 1 << 20
	long := strings.Repeat("a", 9*mib)
	tests := []struct {
		name, source, text string
		over               bool
	}{
		{"+ below the limit", "data.val() + data.val() != ''", long[:4*mib], false},
		{"+ beyond the limit", "data.val() + data.val() != ''", long, true},
		{"replace below the limit", "data.val().replace('a', 'b') != ''", long[:mib], false},
		{"replace beyond the limit", "data.val().replace('a', 'aaaa') != ''", long, true},
		{"replace of nothing", "data.val().replace('', data.val()) != ''", long[:mib], true},
		{"length of a long string", "data.val().length > 1", long[:mib], false},
		{"much work on a long string", "data.val().contains('a')" + strings.Repeat(" && data.val().contains('a')", 20), long, true},
		{"matches below the limit", "data.val().matches(/b/)", long[:expr.MaxMatchBytes], false},
		{"matches beyond the limit", "data.val().matches(/b/)", long[:expr.MaxMatchBytes+1], true},
		{"matches of a large pattern", "data.val().matches(/(a?){1000}(b?){1000}$/)", long[:expr.MaxMatchBytes], true},
		{"many look-ups", "data.exists()" + strings.Repeat(" && data.exists()", 4000), "a", false},
		{"too many look-ups", "data.exists()" + strings.Repeat(" && data.exists()", 6000), "a", true},
		{"a long rule", "1 == 1" + strings.Repeat(" && 1 == 1", 20_000), "a", false},
		{"too long a rule", "1 == 1" + strings.Repeat(" && 1 == 1", 60_000), "a", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			failure := evalOver(t, test.source, test.text)
			if over := failure != nil && failure.OverBudget; over != test.over || failure != nil && !over {
				t.Errorf("failure %v, want over budget %v", failure, test.over)
			}
		})
	}
}
