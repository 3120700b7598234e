package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		names       []string
		least, most int
	}{
		{nil, 0, 0},
		{[]string{"FILE"}, 1, 1},
		{[]string{"PATH", "[FILE]"}, 1, 2},
		{[]string{"PATH..."}, 1, 100},
		{[]string{"PATH", "[FILE...]"}, 1, 100},
		{[]string{"[FILE]", "[FILE]"}, 0, 2},
	}
	c := &cobra.Command{Use: "livetree"}
	for _, test := range tests {
		for n := range 5 {
			err := takes(test.names...)(c, make([]string, n))
			if want := test.least <= n && n <= test.most; (err == nil) != want {
				t.Errorf("%q with %d arguments: %v, want that they are taken: %v", test.names, n, err, want)
			}
		}
	}
}

// TestHelpFits: no line of what a command says about itself is longer than a terminal is wide, but for examples, which are to be copied.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	const width = 90
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for line := range strings.Lines(c.Long) {
			if n := len(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%s --help has a line of %d characters, want %d at most: %s", c.CommandPath(), n, width, line)
			}
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(newRootCommand(newApp()))
}
