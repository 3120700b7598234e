//go:build no_console

package console

import "io/fs"

// embedded are the files in the binary; nil if they were left out.
var embedded fs.FS
