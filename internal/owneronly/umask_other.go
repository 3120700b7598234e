//go:build !unix

package owneronly

// Umask does nothing here: files have no such modes.
func Umask() {}
