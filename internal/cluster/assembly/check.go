package assembly

import (
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
)

// This file has what is looked at before a node is started.

// CheckLevel returns an error, one line, if a data directory is that of a node of a cluster whose level this version does not know. It only
// reads, and is called before anything else.
func CheckLevel(data string) error { return membership.CheckLevel(data, record.Known) }
