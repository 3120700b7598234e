//go:build !unix

package rest_test

import (
	"testing"
	"time"
)

// cpu skips: nothing here tells the processor time.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	b.Skip("the processor time is known on Unix only")
	return 0
}
