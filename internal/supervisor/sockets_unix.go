//go:build unix

package supervisor

import (
	"fmt"
	"os"
	"syscall"
)

// takeSockets takes the files from the first on, which must be sockets that listen.
func takeSockets(names []string) (map[string]*os.File, error) {
	sockets := map[string]*os.File{}
	for i, name := range names {
		fd := firstSocket + i
		isListening, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
		if err != nil {
			return nil, fmt.Errorf("file %d, which LISTEN_FDS promises as the socket %q: %w", fd, name, err)
		}
		if isListening == 0 {
			return nil, fmt.Errorf("the socket %q of the supervisor does not listen: set Accept=no and ListenStream", name)
		}
		syscall.CloseOnExec(fd)
		sockets[name] = os.NewFile(uintptr(fd), name)
	}
	return sockets, nil
}
