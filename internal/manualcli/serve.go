package manualcli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/manual"
)

// serve serves the manual as a web site to programs on this machine, until the context ends. The site is written to a temporary
// directory, which is gone afterwards.
func (a Surroundings) serve(ctx context.Context, addr string) (err error) {
	if !loopback.Address(addr) {
		return fmt.Errorf("--serve %s: the manual is served to this machine alone: name an address such as 127.0.0.1:8080, or port 0 for any that is free", addr)
	}
	dir, err := os.MkdirTemp("", "livetree-manual-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := manual.WriteSite(dir, a.Version); err != nil {
		return fmt.Errorf("write the manual as a web site: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve the manual: %w", err)
	}
	server := &http.Server{
		Handler:           http.FileServerFS(os.DirFS(dir)),
		ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	cli.Say(a.Out(), fmt.Sprintf("the manual is at http://%s/ until you press ^C\n", listener.Addr()))
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
