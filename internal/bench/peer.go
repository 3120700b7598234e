package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// peerCommand is the hidden command of livetree that runs Peer.
const peerCommand = "bench-peer"

// Peer is one of the other processes of a run: a bare server, or the clients of
// many streams. The first argument says which. It ends with ctx, or when its input
// does: the process that started it is gone then.
func Peer(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case len(args) == 4 && args[0] == bareName:
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
		return runBare(ctx, bareOptions{certFile: args[1], keyFile: args[2], logFile: args[3]}, out)
	case len(args) == 1 && args[0] == streamsName:
		return runStreamClients(ctx, in, out)
	}
	return errors.New("livetree bench starts this by itself")
}

// readyLine is how a bare server says where it is.
func readyLine(out io.Writer, addr, control string) error {
	_, err := fmt.Fprintf(out, "listening on https://%s\ncontrol at http://%s\n", addr, control)
	return err
}
