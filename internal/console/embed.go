//go:build !no_console

package console

import (
	"embed"
	"io/fs"
)

//go:embed web
var web embed.FS

// embedded are the files in the binary; nil if they were left out.
var embedded = func() fs.FS {
	below, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the name is a constant
	}
	return below
}()
