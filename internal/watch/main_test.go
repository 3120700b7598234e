package watch_test

import (
	"os"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

func TestMain(m *testing.M) {
	proof.SideBySide(8)
	os.Exit(m.Run())
}
