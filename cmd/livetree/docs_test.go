package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// docsOn runs livetree docs on a terminal, or not, with a PAGER.
func docsOn(terminal bool, pager string, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	a := newApp()
	a.stdout, a.stderr = &out, &errs
	a.isTerminal = func(any) bool { return terminal }
	a.lookup = func(name string) (string, bool) { return pager, name == "PAGER" }
	code = run(nil, a, append([]string{"docs"}, args...))
	return code, out.String(), errs.String()
}

func TestDocsUseThePagerOnATerminalOnly(t *testing.T) {
	t.Parallel()
	if code, out, errs := docsOn(false, "tr a-z A-Z", "terms"); code != 0 || !strings.HasPrefix(out, "# Terms\n") || errs != "" {
		t.Errorf("without a terminal: exit %d, %.30q, %q", code, out, errs)
	}
	if code, out, errs := docsOn(true, "tr a-z A-Z", "terms"); code != 0 || !strings.HasPrefix(out, "TERMS\n=====\n") || errs != "" {
		t.Errorf("on a terminal: exit %d, %.30q, %q, want it from the pager", code, out, errs)
	}
	if code, out, errs := docsOn(true, "", "terms"); code != 0 || !strings.HasPrefix(out, "Terms\n=====\n") || errs != "" {
		t.Errorf("with an empty PAGER: exit %d, %.30q, %q", code, out, errs)
	}
	if code, _, errs := docsOn(true, "no-such-pager", "terms"); code != 1 || !oneLine(errs) || !strings.Contains(errs, "PAGER names another") {
		t.Errorf("with a pager that is not there: exit %d, %q", code, errs)
	}
}

// TestManLeavesModesAlone: the directory may be one that others use, such as /tmp.
func TestManLeavesModesAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "there")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, into := range []string{dir, filepath.Join(dir, "man", "man1")} {
		if code := run(nil, newApp(), []string{"man", into}); code != 0 {
			t.Fatalf("livetree man %s: exit %d", into, code)
		}
	}
	if runtime.GOOS == "windows" {
		return // which has no such modes
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "livetree.1": 0o644, "man": 0o755, "man/man1": 0o755, "man/man1/livetree.1": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("the mode of %s is %o, want %o", name, got, want)
		}
	}
}
