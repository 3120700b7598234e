//go:build !linux

package fulldisk

import "os"

// take has a file take space.
func take(file *os.File, bytes int64) error {
	zeros := make([]byte, 1<<20)
	for ; bytes > 0; bytes -= int64(len(zeros)) {
		if _, err := file.Write(zeros[:min(int64(len(zeros)), bytes)]); err != nil {
			return err
		}
	}
	return nil
}
