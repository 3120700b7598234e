package server

import "testing"

func TestShareFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		files               uint64
		wanted              int
		tables, connections int
	}{
		{0, 25_000, 4096, 25_000},
		{1 << 20, 25_000, 4096, 25_000},
		{1<<64 - 1, 25_000, 4096, 25_000},
		{65_536, 100_000, 4096, 61_280},
		{1024, 25_000, 256, 608},
		{1024, 10, 256, 10},
		{256, 25_000, 64, 32},
		{64, 25_000, 16, 16}, // too few for anything; what there is must do
	} {
		tables, connections := shareFiles(test.files, test.wanted)
		if tables != test.tables || connections != test.connections {
			t.Errorf("shareFiles(%d, %d) = %d, %d, want %d, %d", test.files, test.wanted, tables, connections, test.tables, test.connections)
		}
	}
}
