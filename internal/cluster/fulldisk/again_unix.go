//go:build unix

package fulldisk

import (
	"errors"
	"os"
	"syscall"
)

// startAgain has this process begin from its first instruction. Files and locks are closed. It returns only if it cannot.
func startAgain() error {
	if os.Getenv("LISTEN_FDS") != "" {
		return errors.New("its sockets are those of a supervisor, which starts it again")
	}
	name, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(name, os.Args, os.Environ())
}
