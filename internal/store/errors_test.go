package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("the port is in use"), 1},
		{&os.PathError{Op: "mkdir", Path: "/data", Err: syscall.EACCES}, 1},
		{fmt.Errorf("open /data: %w", ErrInUse), 1},
		{fmt.Errorf("open /data: %w", ErrNewer), 1},
		{fmt.Errorf("open /data: %w: %w", ErrDamaged, &os.PathError{Op: "open", Path: "/data/store/000004.log", Err: syscall.ENOENT}), ExitDamaged},
		{errors.Join(&os.PathError{Op: "close", Path: "/data/LOCK", Err: syscall.EIO}, ErrDamaged), ExitDamaged},
		{&os.PathError{Op: "sync", Path: "/data", Err: syscall.EIO}, ExitIO},
		{fmt.Errorf("write the secret: %w", &os.PathError{Op: "write", Path: "/data/secrets/default", Err: syscall.ENOSPC}), ExitIO},
		{&os.PathError{Op: "write", Path: "/data", Err: syscall.EDQUOT}, ExitIO},
		{&os.PathError{Op: "open", Path: "/data", Err: syscall.EROFS}, ExitIO},
		{fmt.Errorf("open the database: %w", ErrNoSpace), ExitIO},
	}
	for _, test := range tests {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("ExitCode(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}
