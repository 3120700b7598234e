package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/store"
)

// page returns a page of the manual.
func page(t *testing.T, topic string) string {
	t.Helper()
	all, err := docs.Pages()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p docs.Page) bool { return p.Topic == topic })
	if i < 0 {
		t.Fatalf("the manual has no page %s", topic)
	}
	return all[i].Text
}

var inQuotes = regexp.MustCompile("`([^`]+)`")

// promised returns the texts in quotes of a part of docs/stability.md, which begins with a mark and ends with the next
// empty line after its first text.
func promised(t *testing.T, mark string) []string {
	t.Helper()
	_, after, ok := strings.Cut(page(t, "stability"), "<!-- "+mark+" -->\n\n")
	if !ok {
		t.Fatalf("docs/stability.md has no list of %s", mark)
	}
	part, _, _ := strings.Cut(after, "\n\n")
	var names []string
	for line := range strings.Lines(part) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			line = cells[1] // of a table only the first column
		}
		for _, quoted := range inQuotes.FindAllStringSubmatch(line, -1) {
			names = append(names, quoted[1])
		}
	}
	return names
}

// same wants a list of the page to be that of the code.
func same(t *testing.T, mark string, want []string) {
	t.Helper()
	got := promised(t, mark)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/stability.md lists other %s than there are:\n got %s\nwant `%s`", mark, strings.Join(got, " "), strings.Join(want, "`, `"))
	}
}

// TestStabilityPage holds the lists of docs/stability.md against the code: what is promised is there, and what is there is
// on one side of the promise.
func TestStabilityPage(t *testing.T) {
	t.Parallel()
	var names, withJSON []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			name := strings.TrimPrefix(below.CommandPath(), "livetree ")
			if below.Hidden || name == "help" {
				continue
			}
			if !strings.HasPrefix(below.Use, below.Name()+" COMMAND") {
				names = append(names, name)
			}
			if f := below.Flags().Lookup("json"); f != nil && f.Value.Type() == "bool" {
				withJSON = append(withJSON, name)
			}
			walk(below)
		}
	}
	root := newRootCommand(newApp())
	walk(root)
	unstable := promised(t, "unstable commands")
	isUnstable := func(name string) bool { return slices.Contains(unstable, name) }
	for _, name := range unstable {
		if !slices.Contains(names, name) {
			t.Errorf("docs/stability.md names the command %s, which is not there", name)
		}
	}
	same(t, "commands", slices.DeleteFunc(slices.Clone(names), isUnstable))
	same(t, "JSON", slices.DeleteFunc(withJSON, isUnstable))

	codes := map[string]bool{"0": true, fmt.Sprint(exitRefused): true, fmt.Sprint(store.ExitCode(store.ErrDamaged)): true}
	for _, code := range []int{client.ExitOther, client.ExitData, client.ExitUnavailable, client.ExitFile, client.ExitInterrupted, client.ExitProtocol, client.ExitDenied} {
		codes[fmt.Sprint(code)] = true
	}
	same(t, "exit codes", slices.Collect(maps.Keys(codes)))

	for _, metric := range promised(t, "unstable metrics") {
		if name, all := strings.CutSuffix(metric, "*"); !strings.Contains(page(t, "metrics"), "| `"+name) || !all && !strings.Contains(page(t, "metrics"), "| `"+name+"` |") {
			t.Errorf("docs/stability.md names %s, which docs/metrics.md does not", metric)
		}
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range promised(t, "unstable settings") {
		if serve.Flags().Lookup(strings.TrimPrefix(setting, "--")) == nil {
			t.Errorf("docs/stability.md names %s, which serve has not", setting)
		}
	}
}

var routePattern = regexp.MustCompile(`"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"`)

// TestStabilityPageRoutes does the same for the routes of the admin listener.
func TestStabilityPageRoutes(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../internal/admin/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, route := range routePattern.FindAllStringSubmatch(string(source), -1) {
		routes = append(routes, route[1])
	}
	if len(routes) < 20 {
		t.Fatalf("%d routes", len(routes))
	}
	stable := promised(t, "routes")
	for _, route := range stable {
		if !slices.Contains(routes, route) {
			t.Errorf("docs/stability.md promises %s, which is not there", route)
		}
	}
	if len(stable) == 0 {
		t.Error("docs/stability.md promises no route")
	}
}

// TestVersionAsJSON: see docs/stability.md.
func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	code, out, _ := command("version", "--json")
	for _, field := range promised(t, "version") {
		if code != 0 || !strings.Contains(out, `"`+field+`":`) {
			t.Errorf("livetree version --json has no %s: %s", field, out)
		}
	}
}
