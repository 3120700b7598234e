package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A Group is a control group of Linux, which bounds the memory of the processes in it.
type Group struct{ dir string }

// NewGroup makes a group. That takes the rights of root.
func NewGroup(memoryBytes int64) (*Group, error) {
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("livetree-bench-%d", os.Getpid())
	g, file := &Group{filepath.Join(root, name)}, "memory.max"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		g.dir, file = filepath.Join(root, "memory", name), "memory.limit_in_bytes" // version 1
	}
	err := os.Mkdir(g.dir, 0o755)
	if err == nil {
		if err = os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(memoryBytes, 10)), 0); err != nil {
			err = errors.Join(err, g.Remove())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hold a server to %d bytes of memory, which takes root and the control groups of Linux: %w", memoryBytes, err)
	}
	return g, nil
}

// Add moves a process into the group.
func (g *Group) Add(pid int) error {
	if g == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// Remove removes the group, once its processes have ended.
func (g *Group) Remove() error {
	var err error
	for range 100 {
		// The system counts a process that has ended as one for a moment yet.
		if err = os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
