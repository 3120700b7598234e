package machine

import (
	"testing"
	"testing/fstest"
)

// TestMemoryOfGroups reads the limits of control groups as containers, units and machines have them.
func TestMemoryOfGroups(t *testing.T) {
	t.Parallel()
	const none = "9223372036854771712\n" // of version 1, for no limit
	tests := []struct {
		name  string
		files map[string]string
		most  int64
		want  int64
	}{
		{"no groups", nil, 1000, 1000},
		{"nothing known", nil, 0, 0},
		{"version 2 without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 1000, 1000},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "512\n"}, 1000, 512},
		{"only a limit is known", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "512\n"}, 0, 512},
		{"a limit above the machine", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "5000\n"}, 1000, 1000},
		{"a unit within a slice", map[string]string{
			"proc/self/cgroup":                                       "0::/system.slice/livetree.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "300\n",
			"sys/fs/cgroup/system.slice/livetree.service/memory.max": "max\n",
		}, 1000, 300},
		{"the name of outside", map[string]string{"proc/self/cgroup": "0::/docker/1234\n", "sys/fs/cgroup/memory.max": "700\n"}, 1000, 700},
		{"version 1", map[string]string{
			"proc/self/cgroup":                               "3:cpu,cpuacct:/a\n4:blkio,memory:/a/b\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     none,
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "400\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": none,
		}, 1000, 400},
		{"nonsense", map[string]string{"proc/self/cgroup": "::\nx\n0:\n0::/../..\n\n", "sys/fs/cgroup/memory.max": "-1\n"}, 1000, 1000},
	}
	for _, test := range tests {
		files := fstest.MapFS{}
		for name, text := range test.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memoryIn(files, test.most); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	if got := Memory(); got < 0 {
		t.Errorf("this machine has %d", got)
	}
}
