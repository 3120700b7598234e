//go:build !unix

package supervisor

import (
	"errors"
	"os"
)

// takeSockets refuses: this system hands over no sockets.
func takeSockets(names []string) (map[string]*os.File, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return nil, errors.New("LISTEN_FDS is set, and this system hands over no sockets: unset it")
}
