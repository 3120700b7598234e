package inspect

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// An Archive is a store that is only read: that of a backup, or of a server that is
// stopped. Package store opens it.
type Archive struct {
	Files  Files
	DB     *pebble.DB
	Rows   pebble.Reader // a snapshot
	Next   layout.ID     // the number of the next database
	Millis int64         // the latest time of a commit
}
