package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// root is the module's root; tests run in the directory of their package.
const root = "../.."

// livetree is the layout of this module, in import order: a package may import
// only packages above it.
var livetree = layout{
	module: "github.com/livetree/livetree",
	order: []string{
		"docs",
		"internal/fault",
		"internal/wholefile",
		"internal/login",
		"internal/machine",
		"internal/supervisor",
		"internal/owneronly",
		"internal/clientaddr",
		"internal/budget",
		"internal/loopback",
		"internal/local",
		"internal/pause",
		"internal/shares",
		"internal/tree",
		"internal/sdkhash",
		"internal/pushid",
		"internal/query",
		"internal/rules/expr",
		"internal/rules",
		"internal/denials",
		"internal/auth",
		"internal/leave",
		"internal/hosts",
		"internal/dev",
		"internal/hub",
		"internal/store/layout",
		"internal/store/damage",
		"internal/store/datadir",
		"internal/store/rowcache",
		"internal/store/seek",
		"internal/store/gather",
		"internal/store/inspect",
		"internal/store/transfer",
		"internal/store/batch",
		"internal/store/stamp",
		"internal/store/memo",
		"internal/store/logkeep",
		"internal/store/journal",
		"internal/store",
		"internal/compare",
		"internal/scan",
		"internal/hook",
		"internal/state",
		"internal/watch",
		"internal/engine",
		"internal/revert",
		"internal/past",
		"internal/rows",
		"internal/audience",
		"internal/catalog",
		"internal/expiry",
		"internal/deliver",
		"internal/cluster/record",
		"internal/cluster/shard",
		"internal/cluster",
		"internal/cluster/large",
		"internal/cluster/databases",
		"internal/acmecert",
		"internal/cluster/rowcheck",
		"internal/cluster/status",
		"internal/cluster/doctor",
		"internal/cluster/etcdlog",
		"internal/cluster/peer",
		"internal/cluster/invite",
		"internal/cluster/membership",
		"internal/cluster/fulldisk",
		"internal/cluster/burst",
		"internal/cluster/assembly",
		"internal/archive/place",
		"internal/archive",
		"internal/archive/place/s3",
		"internal/archive/places",
		"internal/archive/bases",
		"internal/exchange",
		"internal/outbox",
		"internal/rows/rowshttp",
		"internal/rest",
		"internal/google",
		"internal/wire/frame",
		"internal/wire/message",
		"internal/wire/poll",
		"internal/wire",
		"internal/passon",
		"internal/session",
		"internal/console",
		"internal/backup",
		"internal/archive/restore",
		"internal/archiver",
		"internal/admin",
		"internal/lane",
		"internal/server",
		"internal/client",
		"internal/bench/bare",
		"internal/bench/people",
		"internal/bench/process",
		"internal/bench/report",
		"internal/bench",
		"internal/cli",
		"internal/serverflags",
		"internal/clienttrust",
		"internal/hookcli",
		"internal/clustercli",
		"internal/logincli",
		"internal/demo",
		"internal/topview",
		"internal/manual",
		"internal/manualcli",
		"cmd/livetree",
		"cmd/livetree-bench",
	},
	support: []string{
		"internal/arch",
		"internal/freeaddr",
		"internal/histories",
		"internal/model",
		"internal/proof",
		"internal/wiretest",
	},
	fixtures: map[string]string{
		"internal/archive/placetest":     "internal/archive/place",
		"internal/archive/s3test":        "internal/archive/place/s3",
		"internal/cluster/databasestest": "internal/cluster/databases",
		"internal/cluster/shardtest":     "internal/cluster/shard",
		"internal/enginetest":            "internal/engine",
		"internal/phone":                 "internal/tree",
	},
	suites: []string{
		"conformance",
		"trust",
	},
}

// TestLayout reads the files itself, through os, so that the test cache knows
// them: a run of the go command would be answered from a stale cache entry.
func TestLayout(t *testing.T) {
	problems, err := livetree.check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// tableRow is a package's row in docs/architecture.md: number, package, job, state.
var tableRow = regexp.MustCompile("(?m)^\\| *[0-9]+ *\\| *`([a-z0-9/-]+)` *\\|.*\\| *(here|begun|planned) *\\|$")

func TestArchitectureTableAgreesWithLayout(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		dir, state := row[1], row[2]
		if dir != "docs" && !strings.HasPrefix(dir, "cmd/") {
			dir = "internal/" + dir
		}
		listed = append(listed, dir)
		if files, err := filepath.Glob(filepath.Join(root, dir, "*.go")); err != nil {
			t.Fatal(err)
		} else if len(files) > 0 && state == "planned" {
			t.Errorf("docs/architecture.md says that %s is planned, but it exists", dir)
		}
	}
	if !slices.Equal(listed, livetree.order) {
		t.Errorf("docs/architecture.md lists\n%q\nwant the order of the layout\n%q", listed, livetree.order)
	}
}

// TestLayoutFindsProblems feeds the check small modules, each with one thing
// out of place, and one that is in order.
func TestLayoutFindsProblems(t *testing.T) {
	small := layout{
		module:   "example.org/m",
		order:    []string{"internal/low", "internal/high", "internal/top", "cmd/m"},
		support:  []string{"internal/arch", "internal/model"},
		fixtures: map[string]string{"internal/lowtest": "internal/low", "internal/hightest": "internal/high"},
		suites:   []string{"suite"},
	}
	const (
		low   = "// Package low is the bottom.\npackage low\n"
		high  = "// Package high is the top.\npackage high\n"
		model = "// Package model is for tests.\npackage model\n"
		suite = "// Package suite is tests.\npackage suite\n"
		fixed = "// Package hightest opens high.\npackage hightest\n"
		lower = "// Package lowtest opens low.\npackage lowtest\n"
	)
	tests := []struct {
		name  string
		files map[string]string
		want  []string // the problems, in order
	}{
		{
			name: "in order",
			files: map[string]string{
				"internal/low/low.go":        low + "import _ \"fmt\"\n",
				"internal/low/low_test.go":   "package low_test\nimport _ \"example.org/m/internal/low\"\nimport _ \"example.org/m/internal/model\"\n",
				"internal/high/high.go":      high + "import _ \"example.org/m/internal/low\"\n",
				"internal/high/more.go":      "package high\n",
				"internal/model/model.go":    model,
				"suite/doc.go":               suite,
				"suite/suite_test.go":        "package suite_test\nimport _ \"example.org/m/internal/high\"\n",
				"cmd/m/main.go":              "// M is the command.\npackage main\nimport _ \"example.org/m/internal/high\"\n",
				"internal/low/testdata/x.go": "not Go at all",
				"tools/go.mod":               "module example.org/m/tools\n",
				"tools/tools.go":             "package tools\n",
				".hidden/x.go":               "package x\n",
				"_old/x.go":                  "package x\n",
			},
		},
		{
			name: "fixture in order",
			files: map[string]string{
				"internal/low/low.go":           low,
				"internal/low/low_test.go":      "package low_test\nimport _ \"example.org/m/internal/high\"\nimport _ \"example.org/m/internal/hightest\"\n",
				"internal/hightest/hightest.go": fixed + "import _ \"example.org/m/internal/high\"\nimport _ \"example.org/m/internal/model\"\nimport _ \"example.org/m/internal/lowtest\"\n",
				"internal/lowtest/lowtest.go":   lower,
				"internal/model/model.go":       model,
			},
		},
		{
			name: "fixture out of place",
			files: map[string]string{
				"internal/low/low.go":           low + "import _ \"example.org/m/internal/hightest\"\n",
				"internal/hightest/hightest.go": fixed + "import _ \"example.org/m/internal/top\"\n",
				"internal/lowtest/lowtest.go":   lower + "import _ \"example.org/m/internal/hightest\"\n",
			},
			want: []string{
				"internal/hightest/hightest.go:3:8: internal/hightest imports internal/top, which is not above it in the list",
				"internal/low/low.go:3:8: internal/low imports internal/hightest, which only tests may import",
				"internal/lowtest/lowtest.go:3:8: internal/lowtest imports internal/hightest, which only tests may import",
			},
		},
		{
			name:  "upward import",
			files: map[string]string{"internal/low/low.go": low + "import \"example.org/m/internal/high\"\n"},
			want:  []string{"internal/low/low.go:3:8: internal/low imports internal/high, which is not above it in the list"},
		},
		{
			name: "upward import in a test",
			files: map[string]string{
				"internal/low/low.go":      low,
				"internal/low/low_test.go": "package low\nimport \"example.org/m/internal/high\"\n",
			},
			want: []string{"internal/low/low_test.go:2:8: internal/low imports internal/high, which is not above it in the list"},
		},
		{
			name:  "import of the root package",
			files: map[string]string{"internal/low/low.go": low + "import \"example.org/m\"\n"},
			want:  []string{"internal/low/low.go:3:8: internal/low imports ., which is not listed"},
		},
		{
			name:  "upward import behind a build constraint",
			files: map[string]string{"internal/low/low.go": "//go:build windows\n\n" + low + "import \"example.org/m/internal/high\"\n"},
			want:  []string{"internal/low/low.go:5:8: internal/low imports internal/high, which is not above it in the list"},
		},
		{
			name:  "test support outside of a test",
			files: map[string]string{"internal/high/high.go": high + "import \"example.org/m/internal/model\"\n"},
			want:  []string{"internal/high/high.go:3:8: internal/high imports internal/model, which only tests may import"},
		},
		{
			name:  "test support that is not apart",
			files: map[string]string{"internal/model/model.go": model + "import \"example.org/m/internal/low\"\n"},
			want:  []string{"internal/model/model.go:3:8: internal/model imports internal/low, but a package for tests imports nothing of the module"},
		},
		{
			name: "suite that is more than tests",
			files: map[string]string{
				"suite/doc.go":           suite + "import \"example.org/m/internal/low\"\n",
				"internal/low/low.go":    low,
				"internal/low/a_test.go": "package low\nimport \"example.org/m/suite\"\n",
			},
			want: []string{
				"internal/low/a_test.go:2:8: internal/low imports suite, which nothing may import",
				"suite/doc.go:3:8: suite imports internal/low, but a package for tests imports nothing of the module",
			},
		},
		{
			name: "packages that are not listed",
			files: map[string]string{
				"m.go":                    "// Package m is at the root.\npackage m\n",
				"internal/extra/extra.go": "// Package extra is new.\npackage extra\nimport _ \"example.org/m/internal/high\"\n",
			},
			want: []string{
				". is a package, but is not listed",
				"internal/extra is a package, but is not listed",
			},
		},
		{
			name:  "package without a comment",
			files: map[string]string{"internal/low/low.go": "// A remark that belongs to nothing.\n\npackage low\n"},
			want:  []string{"internal/low has no package comment"},
		},
		{
			name:  "main package without a comment",
			files: map[string]string{"cmd/m/main.go": "//go:build linux\npackage main\n"},
			want:  []string{"cmd/m has no package comment"},
		},
		{
			name:  "comment only in a test file",
			files: map[string]string{"internal/low/low.go": "package low\n", "internal/low/low_test.go": low},
			want:  []string{"internal/low has no package comment"},
		},
		{
			name:  "two comments",
			files: map[string]string{"internal/low/doc.go": low, "internal/low/low.go": low},
			want:  []string{"internal/low has 2 package comments, want one: internal/low/doc.go, internal/low/low.go"},
		},
		{
			name:  "comment about something else",
			files: map[string]string{"internal/low/low.go": "// The bottom.\npackage low\n"},
			want:  []string{`internal/low/low.go: package comment does not start with "Package " and the name`},
		},
		{
			name:  "name that differs from the directory",
			files: map[string]string{"internal/low/low.go": "// Package bottom is low.\npackage bottom\n"},
			want:  []string{"internal/low/low.go: package bottom in directory internal/low, want low"},
		},
		{
			name:  "command below internal",
			files: map[string]string{"internal/low/main.go": "// Low is a command.\npackage main\n"},
			want:  []string{"internal/low/main.go: package main in directory internal/low, want low"},
		},
		{
			name:  "bag of things",
			files: map[string]string{"internal/util/util.go": "// Package util is anything.\npackage util\n"},
			want: []string{
				"internal/util is named after nothing in particular: name it after what it holds",
				"internal/util is a package, but is not listed",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.org/m\n")}}
			for name, text := range test.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := small.check(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("check found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestLayoutReportsUnreadableFile(t *testing.T) {
	fsys := fstest.MapFS{"internal/low/low.go": {Data: []byte("packag low\n")}}
	if _, err := livetree.check(fsys); err == nil {
		t.Error("check of a file that does not parse: no error, want one")
	}
}
