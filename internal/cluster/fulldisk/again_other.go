//go:build !unix

package fulldisk

import "errors"

// startAgain says that a process cannot begin again here: its supervisor starts it.
func startAgain() error { return errors.New("this system has no such call") }
