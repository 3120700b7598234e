// Package arch holds the shape of the module, and the truth of some of its texts, by
// test.
//
// It has no code of its own. Its tests read every Go file of the module and
// check that the packages form the one list in arch_test.go: each package
// imports only packages above it, nothing stands outside the list, and each
// package says in exactly one package comment what it is. They also compare the
// list with the table in docs/architecture.md.
//
// Of the texts they check that documents which are referred to are there, that
// internal/store/FORMAT.md names every setting, that nothing planned is described as
// if it were there, and that decisions have one form.
//
// To add a package, put it into the list and the table, above everything that
// imports it.
package arch
