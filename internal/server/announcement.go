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
	text := a.forScripts(addr)
	if a.Terminal {
		text = a.forPeople(addr)
	}
	_, err := a.Out.Write([]byte(text))
	return err
}

// forPeople says what a person wants to know first. The first line is that of forScripts.
func (a announcement) forPeople(addr net.Addr) string {
	var text strings.Builder
	fmt.Fprintf(&text, "livetree: listening on https://%s\n%s", addr, a.console)
	fmt.Fprintf(&text, "  data: %s\n", a.Data)
	if domains := a.ACME.Domains; len(domains) > 0 {
		fmt.Fprintf(&text, "  certificates by ACME for: %s\n", strings.Join(domains, ", "))
	}
	if a.Dev {
		text.WriteString("  --dev: every program on this machine can read and write, and no other machine\n")
	} else {
		text.WriteString("  closed to all but the holder of its secret, until rules let others in\n")
	}
	if a.Try != "" {
		fmt.Fprintf(&text, "\nTry it, in another terminal in this directory:\n\n  %s\n\n^C stops the server.\n", a.Try)
	}
	return text.String()
}

// stopping tells a person that the server was asked to stop.
func (a announcement) stopping() {
	if a.Terminal {
		_, _ = a.Out.Write([]byte("livetree: stopping when running requests are answered; ^C again stops at once\n")) // nothing rests on it
	}
}

// forScripts has the lines that scripts know.
func (a announcement) forScripts(addr net.Addr) string {
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
	if a.Dev {
		text.WriteString("  --dev: everybody on this machine can read and write")
	}
	text.WriteString(a.trial(curl, secret, hasFile))
	return text.String()
}

// trial returns the end of the text for scripts: what can be tried, if a request need not name a database.
func (a announcement) trial(curl, secret string, hasFile bool) string {
	switch {
	case a.DefaultDatabase == "" && a.Dev:
		return "\n"
	case a.DefaultDatabase == "":
		return "  no default database: requests name one, which livetree db create makes\n"
	case a.Dev:
		return fmt.Sprintf("; try\n    %s\n", curl)
	case hasFile:
		return fmt.Sprintf("  try\n    %s'?auth='$(head -n 1 %s)\n", curl, secret) // it may hold several
	case a.Secret == "":
		return fmt.Sprintf("  try\n    %s'?auth='$(livetree secret show %s --data %s | head -n 1)\n", curl, a.DefaultDatabase, a.Data)
	default:
		return fmt.Sprintf("  try\n    %s'?auth='$LIVETREE_SECRET\n", curl)
	}
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
