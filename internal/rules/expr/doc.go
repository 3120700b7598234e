// Package expr is the expression language of security rules: what stands in the
// strings of .read, .write and .validate.
//
// An expression is JavaScript to look at, and much less: literals, variables,
// operators, and the methods of strings and snapshots. It has no loops, no
// assignments and no functions of its own, and it must be boolean by its static
// types. The stages, a file each:
//
//   - scan.go makes tokens, parse.go a syntax tree (node.go);
//   - types.go and check.go decide what each part is, and refuse what cannot
//     work, with the texts of the service whose language this is;
//   - compile.go turns the checked tree into closures, eval.go runs them.
//
// The types to know are Expr, a compiled expression; Env, all that it can see;
// and Data, one state of the tree. Snapshots are lazy: an expression looks at no
// more of the tree than it asks for, by Look and Exists.
//
// # Failing
//
// An expression that meets a value it cannot work with, such as null + 1, fails
// as a whole, whatever stands around the place: `null + 1 == 1 || true` is not
// true. Only && || and ?: that do not evaluate the place prevent it. Eval
// returns such an end as a *Failure. Any other error comes from Data and says
// nothing about the rule.
//
// # Bounds
//
// Nesting is bounded (MaxDepth), and so is evaluation: in steps (MaxSteps), in
// bytes of a produced string (MaxStringBytes) and of a matched one
// (MaxMatchBytes). All evaluations with one Env are bounded together (Env.Limit), in
// steps that measure what they really take. There is no clock in it: the same expression over the same
// data always comes to the same end.
package expr
