package engine_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/tree"
)

// TestForwardedOfAnotherTenure: a request of another node was sent to the home of one tenure. In a later one it must not be made: the
// other node has seen that the tenure is over, and sends it again.
func TestForwardedOfAnotherTenure(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"small": "x", "heavy": strings.Repeat("x", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := func(tenure uint64) engine.Request {
				n, err := tree.DecodeBytes([]byte(`"`+text+`"`), tree.DecodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return engine.Request{
					Write: tree.Put(path(t, "a"), n), Who: auth.Identity{Admin: true}, Origin: engine.Origin{Node: 2, Number: 1, Tenure: tenure},
				}
			}
			log, db := openMoody(t)
			if commit, err := db.Write(t.Context(), request(1)); err != nil || commit.Position != 1 || len(log.forwarded) > 0 {
				t.Fatalf("in its tenure: %+v, %v, %d forwarded", commit, err, len(log.forwarded))
			}
			if commit, err := db.Write(t.Context(), request(2)); err != nil || commit.Key != "forwarded" || len(log.forwarded) != 1 {
				t.Fatalf("in an earlier one: %+v, %v, %d forwarded", commit, err, len(log.forwarded))
			}
			// Judged, and refused until the tenure is another.
			log, db = openMoody(t, enginetest.Chances{Refuse: 1})
			if commit, err := db.Write(t.Context(), request(1)); err != nil || commit.Key != "forwarded" || len(log.forwarded) != 1 {
				t.Fatalf("refused in its tenure: %+v, %v, %d forwarded", commit, err, len(log.forwarded))
			}
		})
	}
}
