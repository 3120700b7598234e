package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/bench/bare"
	"github.com/livetree/livetree/internal/bench/people"
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
	case len(args) == 5 && args[0] == bareName:
		go endWith(in, cancel)
		syncTime, err := time.ParseDuration(args[4])
		if err != nil {
			return err
		}
		return bare.Run(ctx, bare.Options{CertFile: args[1], KeyFile: args[2], LogFile: args[3], SyncTime: syncTime}, out)
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
	cacheSetting   = "--cache="
	jwksSetting    = "--jwks=" // of the issuer of tokens
	// syncSetting is no flag of livetree serve: how long a sync of the log takes, on a disk
	// that is made up.
	syncSetting = "--sync-time="
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
		if err := apply(&config, setting); err != nil {
			return err
		}
	}
	return server.Run(ctx, config)
}

// apply applies a setting.
func apply(config *server.Config, setting string) (err error) {
	name, value, _ := strings.Cut(setting, "=")
	switch name + "=" {
	case archiveSetting:
		config.Archive = server.Archive{URL: value, Keep: server.DefaultArchiveKeep, Spool: server.DefaultArchiveSpool, PastBytes: server.DefaultPastBytes}
	case allowSetting:
		config.Hooks.Allow = append(config.Hooks.Allow, value)
	case cacheSetting:
		config.CacheBytes, err = strconv.ParseInt(value, 10, 64)
	case jwksSetting:
		issuer := auth.Issuer{URL: people.IssuerURL, Audiences: []string{people.Audience}}
		issuer.Keys, err = os.ReadFile(value)
		config.Issuers = []auth.Issuer{issuer}
	case syncSetting:
		var syncTime time.Duration
		syncTime, err = time.ParseDuration(value)
		config.Disturb = func(o *store.Options) { o.FS = bare.LogFS{FS: vfs.Default, SyncTime: syncTime} }
	default:
		return fmt.Errorf("there is no setting %s", setting)
	}
	return err
}
