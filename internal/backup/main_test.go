package backup_test

import (
	"os"
	"testing"

	"github.com/livetree/livetree/internal/owneronly"
)

// TestMain makes files as the command does: for their owner alone.
func TestMain(m *testing.M) {
	owneronly.Umask()
	os.Exit(m.Run())
}
