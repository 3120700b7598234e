package sdkhash_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
)

// TestAgreesWithSDK compares with what the JavaScript SDK has for random numbers and nodes;
// conformance/sdk/hashes.mjs writes them. LIVETREE_SDK_HASHES is another file of its.
func TestAgreesWithSDK(t *testing.T) {
	t.Parallel()
	file := os.Getenv("LIVETREE_SDK_HASHES")
	if file == "" {
		file = filepath.Join("testdata", "sdk-vectors.json")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Numbers []string
		Nodes   []struct {
			Node json.RawMessage
			Hash string
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Numbers) < 1000 || len(vectors.Nodes) < 100 {
		t.Fatalf("only %d numbers and %d nodes", len(vectors.Numbers), len(vectors.Nodes))
	}
	wrong := 0
	for _, line := range vectors.Numbers {
		var bits, js uint64
		if _, err := fmt.Sscanf(line, "%x %x", &bits, &js); err != nil {
			t.Fatal(err)
		}
		if bits != js {
			wrong++
		}
		if v := math.Float64frombits(bits); sdkhash.JSBits(v) != js {
			t.Errorf("the bits of %v, %016x, are %016x, the SDK has %016x", v, bits, sdkhash.JSBits(v), js)
		}
	}
	if wrong < 100 {
		t.Errorf("the SDK is wrong about %d numbers only", wrong)
	}
	for _, v := range vectors.Nodes {
		n := decode(t, string(v.Node))
		if _, js := write(t, n); js != v.Hash {
			t.Errorf("the hash of %.300s is %s, the SDK has %s", v.Node, js, v.Hash)
		}
	}
}
