package cli

import (
	"io"
	"os"
)

// ReadText reads a file, but of one that is too large only as much as it takes
// to know.
func ReadText(name string, maxBytes int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return "", err
	}
	return string(text), nil
}
