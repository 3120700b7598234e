package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/wholefile"
)

// This file makes a node of a server that was invited: it gets the key and the list of nodes, and keeps them in its data directory.

// The files that an invited node keeps.
const (
	keyFile  = membership.KeyName
	listFile = membership.ListName
)

// A Guest is a server that was invited.
type Guest struct {
	// Data is its data directory, and Addr the address that it will have as a node.
	Data, Addr string
	// Code is the text of the invitation. If it is empty, CodeFile holds it: - is the standard input. It is read only if the directory does
	// not have the key already.
	Code, CodeFile string
	Now            func() time.Time
	Logger         *slog.Logger
}

const (
	// guestPause is the time between two tries to reach a node, guestLog that between two lines in the log.
	guestPause = time.Second
	guestLog   = 5 * time.Second
)

// Join returns the key of the cluster and the list of its nodes: what the directory has, or what a node of the cluster gives for the invitation. It
// waits until one answers.
func (g Guest) Join(ctx context.Context) (peer.Key, []string, error) {
	key, list, err := g.kept()
	if err != nil || len(list) > 0 {
		return key, list, err
	}
	if _, err := os.Stat(filepath.Join(g.Data, layout.PebbleDir)); err == nil && !membership.IsNode(g.Data) {
		return key, nil, fmt.Errorf("%w: %s has data of its own: to join a cluster, start with an empty data directory; the invitation was not used", membership.ErrRefused, g.Data)
	}
	code, err := g.code()
	if err != nil {
		return key, nil, err
	}
	w, err := g.redeem(ctx, code)
	if err != nil {
		return key, nil, err
	}
	if key, err = peer.ParseKey(w.Key); err == nil {
		err = g.keep(w)
	}
	return key, w.Nodes, err
}

// maxCodeFile bounds the file with an invitation.
const maxCodeFile = 8 << 10

// code reads the invitation.
func (g Guest) code() (peer.Code, error) {
	text := g.Code
	if text == "" {
		file := os.Stdin
		if g.CodeFile != "-" {
			opened, err := os.Open(g.CodeFile)
			if err != nil {
				return peer.Code{}, fmt.Errorf("--cluster-join: %w", err)
			}
			defer func() { _ = opened.Close() }() // it was only read
			file = opened
		}
		all, err := io.ReadAll(io.LimitReader(file, maxCodeFile))
		if err != nil {
			return peer.Code{}, fmt.Errorf("--cluster-join: %w", err)
		}
		text = string(all)
	}
	code, err := peer.ParseCode(text)
	if err != nil {
		return peer.Code{}, fmt.Errorf("--cluster-join: %w", err)
	}
	return code, nil
}

// redeem asks for the key until a node answers.
func (g Guest) redeem(ctx context.Context, code peer.Code) (peer.Welcome, error) {
	var logged time.Time
	for {
		w, err := peer.Redeem(ctx, code, g.Addr, g.Now)
		if err == nil {
			g.Logger.Info("this node was invited, and has the key of the cluster", "invitation", code.ID, "nodes", strings.Join(w.Nodes, ","))
			return w, nil
		}
		if refused, is := errors.AsType[*peer.Refused](err); is {
			return w, fmt.Errorf("%w: the cluster says: %s", membership.ErrRefused, refused.Text)
		}
		if now := g.Now(); logged.IsZero() || now.Sub(logged) >= guestLog {
			logged = now
			g.Logger.Info("this node waits to be given the key of its cluster", "invitation", code.ID, "error", err)
		}
		if waitErr := pause.For(ctx, guestPause); waitErr != nil {
			return w, fmt.Errorf("%w while it waited to be given the key: %w", waitErr, err)
		}
	}
}

// kept returns what an earlier start was given; no list if there was none.
func (g Guest) kept() (key peer.Key, list []string, err error) {
	text, err := os.ReadFile(filepath.Join(g.Data, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil, nil
	}
	if err == nil {
		key, err = peer.ParseKey(string(text))
	}
	if err != nil {
		return key, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	nodes, err := os.ReadFile(filepath.Join(g.Data, listFile))
	if err != nil {
		return key, nil, err
	}
	if list = strings.Fields(string(nodes)); len(list) == 0 {
		err = fmt.Errorf("%s names no node: write the address of one into it", filepath.Join(g.Data, listFile))
	}
	return key, list, err
}

// keep writes what was given. The key comes last: with it the directory is whole.
func (g Guest) keep(w peer.Welcome) error {
	if err := os.MkdirAll(g.Data, 0o700); err != nil {
		return err
	}
	err := wholefile.Write(filepath.Join(g.Data, listFile), 0o600, []byte(strings.Join(w.Nodes, "\n")+"\n"))
	if err == nil {
		err = wholefile.Write(filepath.Join(g.Data, keyFile), 0o600, []byte(w.Key))
	}
	if err != nil {
		return fmt.Errorf("keep the key of the cluster: %w: the invitation is used up, make another", err)
	}
	return nil
}

// keepList has a node that was invited find the others at its next start, whichever have come or gone. It does nothing for others.
func keepList(a *Assembly) error {
	name := filepath.Join(a.o.Data, listFile)
	was, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	nodes := nodesOf(a)
	if len(nodes) < 2 || slices.Equal(nodes, strings.Fields(string(was))) {
		return nil
	}
	return wholefile.Write(name, 0o600, []byte(strings.Join(nodes, "\n")+"\n"))
}
