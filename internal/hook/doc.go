// Package hook says what a webhook is, and what a commit is to it.
//
// A Hook has a pattern, such as /orders/$id, and a URL. Each commit that changes a
// location which the pattern matches makes a Notice: for every such location what was
// there before and what is there after, whether the write was made at the location, above
// it or below it. The writer of a database stores the notice with the commit, so neither is there
// without the other. Package deliver sends notices to the URL.
//
// The hooks of a database are two of its settings: the List, and the secrets apart from it. A
// Set is made of both, with a tree of the patterns: a commit is compared only with the patterns
// that begin as its paths do.
//
// Working out a notice reads what was there before, at the turn of the write. Limits bound that:
// what is past them is left out, and the notice says so.
package hook
