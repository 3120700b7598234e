package logincli

import (
	"slices"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/login"
)

// TryLine returns a line to paste beside a server that was just started. It names the data directory unless the
// command finds that by itself: a login or a variable could lead it to another server.
func (s Surroundings) TryLine(lookup func(name string) (string, bool), data string) string {
	const line = `livetree set /hello '"world"'`
	isSet := func(name string) bool { _, ok := lookup(name); return ok }
	book, err := login.Read(s.File)
	leads := err != nil || book.Default != "" || slices.ContainsFunc([]string{"LIVETREE_URL", "LIVETREE_SERVER", "LIVETREE_DATA"}, isSet)
	if data == local.DefaultData && !leads {
		return line
	}
	return line + " --data " + cli.QuoteShell(data)
}
