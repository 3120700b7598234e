package process

import "testing"

func TestMemStats(t *testing.T) {
	got := memStats([]byte("heap profile: 1: 2 [3: 4] @ heap/1\n# runtime.MemStats\n# TotalAlloc = 123\n# Mallocs = 45\n# Stack = 6 / 7\n# PauseNs = [0 0]\n"))
	if len(got) != 3 || got["TotalAlloc"] != 123 || got["Mallocs"] != 45 || got["Stack"] != 6 {
		t.Errorf("memStats = %v", got)
	}
}
