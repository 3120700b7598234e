package assembly

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/status"
)

// TestReportsComeAtOnce: all nodes answer in the same moment, this one, which asks nobody, among them. Each is in what is gathered.
func TestReportsComeAtOnce(t *testing.T) {
	t.Parallel()
	var members []membership.Member
	for i := range 16 {
		members = append(members, membership.Member{ID: record.NodeID(i + 1), Addr: fmt.Sprintf("10.0.0.%d:9100", i)})
	}
	for range 500 {
		reports := gatherReports(members, func(m membership.Member) (status.Report, bool) {
			return status.Report{Addr: m.Addr}, m.ID != 3
		})
		if len(reports) != len(members)-1 || reports["10.0.0.15:9100"].Addr != "10.0.0.15:9100" {
			t.Fatalf("%d nodes of %d are in what is gathered", len(reports), len(members)-1)
		}
	}
}
