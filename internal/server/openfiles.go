package server

import (
	"context"
	"log/slog"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/store"
)

// Of the files that the process may have open the store gets a quarter for its
// tables, and some are kept for what has to be opened at any time: logs, the files
// of the server itself, the store's spares, connections of the operator. Connections
// get the rest. If clients could take all, the store would live on its spares.
const (
	keptFiles    = 96 + admin.MaxConnections
	fewestConns  = 16
	storeShare   = 4
	fewestTables = 16
)

// shareFiles divides the files that may be open between tables of the store and
// connections, of which no more than wanted are given. 0 files means that their
// number is not known.
func shareFiles(files uint64, wanted int) (tables, connections int) {
	if files == 0 {
		return store.DefaultMaxTables, wanted
	}
	tables = max(fewestTables, int(min(files/storeShare, store.DefaultMaxTables)))
	if rest := int64(min(files, 1<<40)) - int64(tables) - keptFiles; rest < int64(wanted) {
		return tables, max(fewestConns, int(rest))
	}
	return tables, wanted
}

// tellFiles tells the operator if the limit for open files lowers the number of
// connections, and warns if it takes more than half of them.
func tellFiles(logger *slog.Logger, files uint64, wanted, connections int) {
	if connections == wanted {
		return
	}
	level := slog.LevelInfo
	if connections < wanted/2 {
		level = slog.LevelWarn
	}
	logger.Log(context.Background(), level,
		"the limit for open files lowers --max-connections: raise it with ulimit -n, or LimitNOFILE= of a unit",
		"open_files", files, "wanted", wanted, "connections", connections)
}
