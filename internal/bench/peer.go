package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

// PeerArgument is the first argument of a process that is to run Peer.
const PeerArgument = "peer"

// Peer is one of the other processes of a run: a Livetree, a bare server, or the
// clients of many streams. The first argument says which. It ends with ctx, or when
// its input does: the process that started it is gone then.
func Peer(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case len(args) >= 2 && args[0] == livetree:
		lines := bufio.NewReader(in)
		secret, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the secret: %w", err)
		}
		go endWith(lines, cancel)
		return runLivetree(ctx, args[1], strings.TrimSpace(secret), args[2:], out)
	case len(args) == 4 && args[0] == bareName:
		go endWith(in, cancel)
		return runBare(ctx, bareOptions{certFile: args[1], keyFile: args[2], logFile: args[3]}, out)
	case len(args) == 1 && args[0] == streamsName:
		return runStreamClients(ctx, in, out)
	}
	return errors.New("livetree-bench starts this by itself")
}

// endWith calls cancel when the input ends.
func endWith(in io.Reader, cancel func()) {
	_, _ = io.Copy(io.Discard, in)
	cancel()
}

// The settings that a peer takes, as the flags of livetree serve: each with its value behind it.
const (
	archiveSetting = "--archive="
	allowSetting   = "--hook-allow="
)

// runLivetree runs a server in a data directory. Its settings are those of livetree
// serve with these flags, but for ports, and times: signs of life would be counted as
// events, and a connection may have to wait long for its turn.
func runLivetree(ctx context.Context, dir, secret string, with []string, out io.Writer) error {
	config := server.Config{
		Data: dir, Addr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
		DefaultDatabase: "default", Secret: secret,
		CacheBytes: store.DefaultCacheBytes, // on every machine: data can be larger than that
		Scrub:      store.Scrub{Every: server.DefaultScrubEvery, BytesPerSecond: server.DefaultScrubRate},
		Limits: server.Limits{
			KeepAlive: time.Hour, HeadTimeout: time.Hour, IdleTimeout: time.Hour,
			DrainAccept: time.Millisecond, DrainRequests: time.Second,
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Out:    out,
	}
	for _, setting := range with {
		if url, ok := strings.CutPrefix(setting, archiveSetting); ok {
			config.Archive = server.Archive{URL: url, Keep: server.DefaultArchiveKeep, Spool: server.DefaultArchiveSpool, PastBytes: server.DefaultPastBytes}
		} else if addr, ok := strings.CutPrefix(setting, allowSetting); ok {
			config.Hooks.Allow = append(config.Hooks.Allow, addr)
		} else {
			return fmt.Errorf("there is no setting %s", setting)
		}
	}
	return server.Run(ctx, config)
}

// readyLine is how a bare server says where it is.
func readyLine(out io.Writer, addr, control string) error {
	_, err := fmt.Fprintf(out, "listening on https://%s\ncontrol at http://%s\n", addr, control)
	return err
}
