package engine_test

import (
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
)

// TestHistories runs testdata/histories. To add a history, write commands with an empty
// output and run the test with -rewrite.
func TestHistories(t *testing.T) { enginetest.RunHistories(t) }
