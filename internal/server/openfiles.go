package server

// Of the files that the process may have open the store gets a quarter for its
// tables, and some are kept for what has to be opened at any time: logs, the files
// of the server itself, connections of the operator. Connections get the rest. If
// clients could take all, the store could not open its next log, and the server
// would have to end.
const (
	keptFiles    = 96
	fewestConns  = 16
	storeShare   = 4
	mostTables   = 4096
	fewestTables = 16
)

// shareFiles divides the files that may be open between tables of the store and
// connections, of which no more than wanted are given. 0 files means that their
// number is not known.
func shareFiles(files uint64, wanted int) (tables, connections int) {
	if files == 0 {
		return mostTables, wanted
	}
	tables = max(fewestTables, int(min(files/storeShare, mostTables)))
	if rest := int64(min(files, 1<<40)) - int64(tables) - keptFiles; rest < int64(wanted) {
		return tables, max(fewestConns, int(rest))
	}
	return tables, wanted
}

// divideFiles returns how many tables the store may have open, and lowers the number
// of connections to what is left.
func (c *Config) divideFiles() (tables int) {
	tables, connections := shareFiles(c.OpenFiles, c.MaxConnections)
	if connections < c.MaxConnections {
		c.Logger.Warn("the limit for open files lowers --max-connections: raise it with ulimit -n, or LimitNOFILE= of a unit",
			"open_files", c.OpenFiles, "wanted", c.MaxConnections, "connections", connections)
		c.MaxConnections = connections
	}
	return tables
}
