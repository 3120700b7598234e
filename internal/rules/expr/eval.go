package expr

import (
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

const (
	// MaxSteps bounds one evaluation. A step is an operator or a call; looking at
	// the tree costs lookSteps, working on text one for each KiB, and matching a
	// pattern as much as pattern and text together ask for. Env.Limit bounds all
	// evaluations of a request, which are charged by what they really take.
	MaxSteps = 100_000
	// MaxStringBytes is the longest string that + and replace() may make.
	MaxStringBytes = tree.MaxStringBytes
	// MaxMatchBytes is the longest string that matches() takes.
	MaxMatchBytes = 64 << 10

	lookSteps = 20
)

// An Env is all that an expression can see. An Env serves one evaluation at a
// time; it may be changed and used again.
type Env struct {
	// Auth is the variable auth: null if nobody is signed in. Its keys need not
	// be valid as child names.
	Auth tree.Node
	// NowMillis is the variable now.
	NowMillis int64
	// Before is the state that root and data show, After that of newData, which
	// .read has not.
	Before, After Data
	// Path is the location of the rule.
	Path tree.Path
	// Wildcards are the values of Scope.Wildcards.
	Wildcards []string
	// Query is the variable query; the zero value is that of a plain read, and of
	// every write.
	Query Query

	// Drawn is a key that was drawn for the request, empty if none was.
	Drawn string

	// UsedDrawn is set when an evaluation looked at a wildcard that stands for the
	// drawn key, and never unset.
	UsedDrawn bool
	// UsedNow is set when an evaluation looked at now, and never unset.
	UsedNow bool

	// Spent counts the steps of all evaluations with this Env, and those that were
	// charged. A step is about 50 ns. If Limit is not 0 and Spent is greater, every
	// evaluation ends, with the error Over, or with a Failure if that is nil.
	Spent, Limit int
	Over         error

	steps int // that are left of one evaluation
}

// An Order is what a query orders by.
type Order uint8

// The orders of a query. A plain read has none.
const (
	OrderNone Order = iota
	OrderByKey
	OrderByValue
	OrderByPriority
	OrderByChild
)

// A Query is what the variable query shows of a read.
type Query struct {
	OrderBy Order
	Child   tree.Path // of OrderByChild
	// StartAt, EndAt and EqualTo are null if they are not given.
	StartAt, EndAt, EqualTo tree.Leaf
	// LimitToFirst and LimitToLast are 0 if they are not given.
	LimitToFirst, LimitToLast int
}

// A Failure is the end of an expression that met something it cannot work with.
// The rule is false then.
type Failure struct {
	Offset  int
	Message string
	// OverBudget says that the expression was given up because it did too much.
	OverBudget bool
}

func (f *Failure) Error() string { return fmt.Sprintf("%d: %s", f.Offset, f.Message) }

// An Expr is a compiled expression. It is immutable.
type Expr struct {
	run                  booleanCode
	constant, isConstant bool
	patterns             int
}

// Constant returns the value of an expression that is just true or false.
func (e *Expr) Constant() (value, ok bool) { return e.constant, e.isConstant }

// PatternSize returns how large the regular expressions are, in instructions:
// most of the memory that an expression takes.
func (e *Expr) PatternSize() int { return e.patterns }

// Eval evaluates the expression. An error that is a *Failure is the rule's own
// and makes it false; any other is one of Data, and nothing is known then.
func (e *Expr) Eval(env *Env) (bool, error) {
	env.steps = MaxSteps
	result, err := e.run(env)
	return result && err == nil, err
}

// spend takes steps off the budget of an evaluation, and charges them.
func (e *Env) spend(steps int) error {
	if e.steps -= steps; e.steps < 0 {
		return errBudget
	}
	return e.Charge(steps)
}

// Charge counts steps that are not those of an evaluation, such as reading data. It
// returns the error that every evaluation ends with from now on if there are too many.
func (e *Env) Charge(steps int) error {
	switch e.Spent += steps; {
	case e.Limit == 0 || e.Spent <= e.Limit:
		return nil
	case e.Over != nil:
		return e.Over
	}
	return errLimit
}

// A weight is what work on text is charged, in steps for each KiB.
type weight int

const (
	equalled weight = 4   // only for equality
	scanned  weight = 32  // byte by byte, as length and < do
	made     weight = 64  // a new string
	parsed   weight = 128 // as a path
	mapped   weight = 200 // to the other case
)

// spendText is spend for work on text. It takes one step off the budget of the
// evaluation, and one more for each KiB, and charges what the work really takes.
func (e *Env) spendText(bytes int, w weight) error {
	if err := e.Charge(bytes*int(w)>>10 - bytes>>10); err != nil { // a short text is not free: rules ask often
		return err
	}
	return e.spend(1 + bytes>>10)
}

var errLimit = &Failure{Message: "The rules of the request take too many steps.", OverBudget: true}

var errBudget = &Failure{Message: fmt.Sprintf("The evaluation takes more than %d steps.", MaxSteps), OverBudget: true}
