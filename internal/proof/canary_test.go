package proof_test

import (
	"os"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// FuzzCanary fails for one input, which fuzzing must find within seconds: if it
// does not, nothing is fuzzed, whatever the other targets say. scripts/fuzz.sh
// looks; in an ordinary run the canary sleeps.
func FuzzCanary(f *testing.F) {
	f.Add([]byte("a bird in a mine"))
	isAwake := os.Getenv("LIVETREE_FUZZ_CANARY") != ""
	f.Fuzz(func(t *testing.T, data []byte) {
		if proof.Canary(data) && isAwake {
			t.Error("the canary sings")
		}
	})
}
