package assembly

import (
	"fmt"
	"net"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
)

// This file has what is looked at before a node is started.

// CheckLevel returns an error, one line, if a data directory is that of a node of a cluster whose level this version does not know. It only
// reads, and is called before anything else.
func CheckLevel(data string) error { return membership.CheckLevel(data, record.Known) }

// CheckAddrs refuses addresses that no node can have: a node would wait for them without end.
func CheckAddrs(addrs []string) error {
	for _, addr := range addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" || port == "0" {
			return fmt.Errorf("%q is not the address of a node: --cluster and --cluster-addr need HOST:PORT, as other machines reach it", addr)
		}
	}
	return nil
}
