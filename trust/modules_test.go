//go:build unix

package trust_test

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

var rewriteModules = flag.Bool("rewrite-modules", false, "write docs/modules.txt anew, to be reviewed")

// modulesFile lists what is linked into the command: module, version, licence.
var modulesFile = filepath.Join("..", "docs", "modules.txt")

const modulesHead = "# The modules that are linked into livetree on Linux, and those of the cluster's log: module, version, licence.\n" +
	"# A test holds this list. `make modules` writes it anew; review what has changed.\n"

const (
	// maxModules is a bound of our own: more should be thought about.
	maxModules = 60
	// clusterPackage is the exception, by name: it is the only package that imports etcd, the tag no_cluster leaves
	// it out, and the modules that it alone brings have a bound of their own (decision 14).
	clusterPackage    = "./internal/cluster/etcdlog"
	maxClusterModules = 46
)

var licences = []struct{ name, mark string }{
	{"Apache-2.0", `Apache License\s+Version 2\.0`},
	{"BSD-3-Clause", `(?i)neither the name`},
	{"BSD-2-Clause", `(?i)redistributions in binary form`},
	{"MIT", `(?i)permission is hereby granted, free of charge`},
	{"ISC", `(?i)permission to use, copy, modify, and(/or)? distribute this software`},
}

// TestModules compares the modules of the command with the list that was reviewed.
func TestModules(t *testing.T) {
	t.Parallel()
	file, err := command.File()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var linked []string
	for _, m := range info.Deps {
		if m.Replace != nil {
			t.Errorf("%s is replaced by %s: a release is built from what go.sum holds", m.Path, m.Replace.Path)
		}
		linked = append(linked, m.Path+" "+m.Version)
	}
	without := modulesOf(t, "./cmd/livetree", "no_cluster")
	if len(without) == 0 || len(without) > maxModules {
		t.Errorf("%d modules are linked without the cluster, want 1 to %d", len(without), maxModules)
	}
	if slices.ContainsFunc(without, func(m string) bool { return strings.HasPrefix(m, "go.etcd.io/etcd") }) {
		t.Error("the tag no_cluster does not leave etcd out")
	}
	linked = append(linked, modulesOf(t, clusterPackage, "")...)
	slices.Sort(linked)
	linked = slices.Compact(linked)
	if more := len(linked) - len(without); more > maxClusterModules {
		t.Errorf("the cluster brings %d modules, want %d at most", more, maxClusterModules)
	}
	if *rewriteModules {
		writeModules(t, linked)
	}
	listed := readModules(t)
	for _, module := range linked {
		if !slices.Contains(listed, module) {
			t.Errorf("%s is linked, but docs/modules.txt does not list it: review it, then run make modules", module)
		}
	}
	for _, module := range listed {
		if runtime.GOOS == "linux" && !slices.Contains(linked, module) {
			t.Errorf("docs/modules.txt lists %s, which is not linked: run make modules", module)
		}
	}
	figures.Report(t, "modules", proof.Count("linked", len(info.Deps)), proof.Count("with_cluster", len(linked)))
}

// modulesOf returns the modules that a package is made of, sorted.
func modulesOf(t *testing.T, pkg, tags string) []string {
	t.Helper()
	const form = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-tags", tags, "-f", form, pkg)
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("the modules of %s: %v", pkg, err)
	}
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	modules = slices.DeleteFunc(modules, func(m string) bool { return m == "" })
	slices.Sort(modules)
	return slices.Compact(modules)
}

// readModules returns the modules of the list, and refuses licences that nobody
// has agreed to.
func readModules(t *testing.T) (listed []string) {
	t.Helper()
	page, err := os.ReadFile(modulesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("docs/modules.txt: %q is not a module, a version and a licence", line)
		}
		if !slices.ContainsFunc(licences, func(l struct{ name, mark string }) bool { return l.name == f[2] }) {
			t.Errorf("docs/modules.txt: %s has the licence %s, which is none of those that are allowed", f[0], f[2])
		}
		listed = append(listed, f[0]+" "+f[1])
	}
	return listed
}

// writeModules writes the list, with the licence that each module's files show.
func writeModules(t *testing.T, linked []string) {
	t.Helper()
	var page strings.Builder
	page.WriteString(modulesHead)
	for _, module := range linked {
		path, _, _ := strings.Cut(module, " ")
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&page, "%s %s\n", module, licenceOf(strings.TrimSpace(string(dir))))
	}
	if err := os.WriteFile(modulesFile, []byte(page.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func licenceOf(dir string) string {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "License", "LICENCE", "COPYING"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		for _, l := range licences {
			if regexp.MustCompile(l.mark).Match(text) {
				return l.name
			}
		}
	}
	return "unknown"
}
