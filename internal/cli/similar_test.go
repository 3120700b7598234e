package cli_test

import (
	"testing"

	"github.com/livetree/livetree/internal/cli"
)

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"addr", "addr", 0}, {"addr", "adr", 1}, {"serve", "sevre", 1}, {"secret", "sevre", 2}, {"data", "dada", 1}, {"kitten", "sitting", 3}} {
		if got, back := cli.EditDistance(test.a, test.b), cli.EditDistance(test.b, test.a); got != test.want || back != test.want {
			t.Errorf("from %q to %q it is %d, and back %d; want %d", test.a, test.b, got, back, test.want)
		}
	}
}
