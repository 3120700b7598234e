package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
)

// settingRow is a row of the table of settings: flag, variable, key, default and
// meaning.
var settingRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|([^|]*)\\|([^|]*)\\|([^|]*)\\| .+ \\|$")

// TestConfigurationManual: docs/configuration.md has a row for every flag of serve,
// in their order, with its variable, its key and its default; and none besides.
func TestConfigurationManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := settingRow.FindAllStringSubmatch(string(manual), -1)
	next := 0
	serveFlags(t).VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if next >= len(rows) || rows[next][1] != f.Name {
			t.Errorf("docs/configuration.md has no row for --%s at its place", f.Name)
			return
		}
		variable, key, value := code(cli.Variable(f.Name)), code(f.Name), code(f.DefValue)
		if !isSetting(f) {
			variable, key = "", ""
		}
		if f.Name == configFlag {
			key = ""
		}
		for i, want := range []string{variable, key, value} {
			if got := strings.TrimSpace(rows[next][2+i]); got != want {
				t.Errorf("docs/configuration.md says %q of --%s, want %q", got, f.Name, want)
			}
		}
		next++
	})
	if next < len(rows) {
		t.Errorf("docs/configuration.md has a row for --%s, which is no flag or not at its place", rows[next][1])
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// manualFile is the example of a file.
var manualFile = regexp.MustCompile("(?s)```toml\n(.*?)```")

// TestConfigurationExample: the file in the manual is one that works.
func TestConfigurationExample(t *testing.T) {
	manual, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write(t, "livetree.toml", manualFile.FindStringSubmatch(string(manual))[1])
	code, out, errs := command("serve", "--config", "livetree.toml", "--print-config")
	if code != 0 || !strings.Contains(out, "livetree.toml:1\n") || !strings.Contains(out, "shop.example.com=shop") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestPrintConfigShowsEverySetting: nothing is left out, and each has its default.
func TestPrintConfigShowsEverySetting(t *testing.T) {
	t.Parallel()
	var shown []admin.Setting
	code, out, errs := command("serve", "--print-config=json")
	if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	serveFlags(t).VisitAll(func(f *pflag.Flag) {
		want := admin.Setting{Name: f.Name, Value: f.DefValue, Origin: cli.OriginDefault}
		if isSetting(f) && !slices.Contains(shown, want) {
			t.Errorf("--print-config does not show %+v", want)
		}
	})
}

func serveFlags(t *testing.T) *pflag.FlagSet {
	t.Helper()
	serve, _, err := newRootCommand(newApp()).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	return serve.Flags()
}
