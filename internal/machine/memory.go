// Package machine tells what the process may use of its machine, or of the container or unit that
// it runs in.
//
// Linux puts processes into control groups, one within the other, and each may have a limit for
// memory: a container has one, and a systemd unit with MemoryMax. Beyond the lowest of them the
// system ends the process, so that counts, and the memory of the machine only if there is none.
package machine

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// memoryIn returns the memory that the process may use by the limits of its control groups, whose files
// are below root; most, which is 0 if it is not known, if they leave it that much.
func memoryIn(root fs.FS, most int64) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return most
	}
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "": // version 2
			most = lowest(root, "sys/fs/cgroup", group, "memory.max", most)
		case hasWord(controllers, "memory"): // version 1
			most = lowest(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", most)
		}
	}
	return most
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// lowest returns the lowest limit of a group and those that it is in. In a container the group
// may have the name that it has outside, and only the outermost files are there.
func lowest(root fs.FS, dir, group, file string, most int64) int64 {
	for at := path.Join("/", group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(dir, at, file))
		if err == nil {
			// "max" is no number, and no limit.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (most == 0 || n < most) {
				most = n
			}
		}
		if at == "/" {
			return most
		}
	}
}
