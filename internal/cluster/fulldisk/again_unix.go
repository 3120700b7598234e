//go:build unix

package fulldisk

import (
	"os"
	"syscall"
)

// startAgain has this process begin from its first instruction. Files and locks are closed. It returns only if it cannot.
func startAgain() error {
	if os.Getenv("LISTEN_FDS") != "" {
		return nil // its sockets would be closed; the supervisor that has made them starts it again
	}
	name, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(name, os.Args, os.Environ())
}
