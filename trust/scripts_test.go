//go:build unix

package trust_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestVulnerabilitiesNotChecked: a look for known vulnerabilities that could not be
// made is neither a pass nor a finding.
func TestVulnerabilitiesNotChecked(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	for _, test := range []struct {
		govulncheck string // what stands for it
		code        int
		text        string
	}{
		{"exit 0", 0, ""},
		{"echo found; exit 3", 3, "found"},
		{"echo 'govulncheck: fetching vulnerabilities: dial tcp'; exit 1", 4, "not checked: "},
		{"echo 'govulncheck: loading packages: no'; exit 1", 1, "loading"},
		{"exit 4", 1, ""},
	} {
		out, err := exec.Command(bash, "../scripts/vuln.sh", bash, "-c", test.govulncheck).CombinedOutput()
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != test.code || !strings.Contains(string(out), test.text) {
			t.Errorf("where govulncheck does %q: exit %d, %q; want exit %d and %q", test.govulncheck, code, out, test.code, test.text)
		}
	}
}
