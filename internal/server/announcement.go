package server

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/livetree/livetree/internal/local"
)

// An announcement tells a person, or a script, that the server is ready and how
// to reach it. It never shows a secret, only where one is.
type announcement struct {
	Config
	caFile  string
	founder *founder
	console string // how to get to the console, a line or nothing
}

func (a announcement) print(addr net.Addr) error {
	var text strings.Builder
	fmt.Fprintf(&text, "livetree: listening on https://%s\n", addr)
	curl := fmt.Sprintf("curl https://%s/.json", reachable(addr))
	if a.caFile != "" {
		fmt.Fprintf(&text, "  certificate authority: %s\n", a.caFile)
		curl = fmt.Sprintf("curl --cacert %s https://%s/.json", a.caFile, reachable(addr))
	}
	if domains := a.ACME.Domains; len(domains) > 0 {
		fmt.Fprintf(&text, "  certificates by ACME for: %s\n", strings.Join(domains, ", "))
	}
	secret := a.founder.secretFile(a.DefaultDatabase)
	hasFile := false
	if a.DefaultDatabase != "" {
		_, err := os.Stat(secret)
		hasFile = err == nil
	}
	if hasFile {
		fmt.Fprintf(&text, "  app secret of %q: in %s\n", a.DefaultDatabase, secret)
	}
	text.WriteString(a.console)
	switch {
	case a.Dev:
		fmt.Fprintf(&text, "  --dev: everybody on this machine can read and write; try\n    %s\n", curl)
	case hasFile:
		fmt.Fprintf(&text, "  try\n    %s'?auth='$(cat %s)\n", curl, secret)
	default:
		fmt.Fprintf(&text, "  try\n    %s'?auth='$LIVETREE_SECRET\n", curl)
	}
	_, err := a.Out.Write([]byte(text.String()))
	return err
}

// reachable returns an address that a client on this machine can use: that of a
// server which listens everywhere is localhost.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

// noteAddress notes in the data directory where the server is, for commands on this machine, and
// returns what forgets it. They can also be told.
func noteAddress(c Config, addr net.Addr) (forget func()) {
	undo, err := local.Note(c.Data, "https://"+reachable(addr), c.DefaultDatabase)
	if err != nil {
		c.Logger.Warn("commands on this machine do not find the server by its data directory: name it with --url", "error", err)
		return func() {}
	}
	return func() {
		if err := undo(); err != nil {
			c.Logger.Warn("the note of the server's address stays: commands on this machine look for it there", "error", err)
		}
	}
}
