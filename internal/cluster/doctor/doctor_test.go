package doctor_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/doctor"
	"github.com/livetree/livetree/internal/cluster/status"
)

// lines returns findings as people see them.
func lines(t *testing.T, findings []status.Finding) string {
	t.Helper()
	var text strings.Builder
	if err := (&status.Diagnosis{Findings: findings}).Print(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestExamine: a node that is well finds nothing, and each thing that is wrong is found once, with what to do.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	well := doctor.Self{
		Data: dir, KeyFile: key, Certificates: []doctor.Certificate{{Name: "c", Ends: now.Add(8 * 24 * time.Hour)}}, LogFile: 1, LogQuota: 4,
		Peers: map[string]string{"a:1": ""}, Now: now,
	}
	// How fast the disk of a test is proves nothing.
	checks := func(e status.Examination) (checks []string) {
		for _, f := range e.Findings {
			if f.Do == "" {
				t.Errorf("%s: it does not say what to do", f.Text)
			}
			if !strings.Contains(f.Text, "a sync of the disk takes") {
				checks = append(checks, f.Check)
			}
		}
		return checks
	}
	if e := doctor.Examine(well); len(checks(e)) > 0 || e.SyncMillis <= 0 || len(e.Unreached) > 0 {
		t.Errorf("a node that is well: %+v", e)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the examination has left %v, %v", left, err)
	}
	for want, change := range map[string]func(*doctor.Self){
		"certificate": func(s *doctor.Self) { s.Certificates[0].Ends = now.Add(6 * 24 * time.Hour) },
		"log":         func(s *doctor.Self) { s.LogFile = 4 },
		"key":         func(s *doctor.Self) { s.KeyFile = filepath.Join(dir, "none") },
		"disk":        func(s *doctor.Self) { s.Data = filepath.Join(dir, "none") },
	} {
		ill := well
		ill.Certificates = slices.Clone(well.Certificates)
		change(&ill)
		if got := checks(doctor.Examine(ill)); !slices.Equal(got, []string{want}) {
			t.Errorf("with a bad %s, %q is found", want, got)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := checks(doctor.Examine(well)); !slices.Equal(got, []string{"key", "data"}) {
		t.Errorf("with files for others, %q is found", got)
	}
}

// TestCompare: what nodes differ in, and what each has found.
func TestCompare(t *testing.T) {
	c := &status.Cluster{
		Nodes: []status.Node{
			{Node: "a:1", State: status.Ready, Version: "v1"}, {Node: "b:1", State: status.Ready, Version: "v2"},
			{Node: "c:1", State: status.Down}, {Node: "d:1", State: status.Ready, Version: "v1"},
		},
		Problems: []string{"c:1 has been down for 3m: start it, or livetree cluster remove it"},
	}
	exams := map[string]status.Examination{
		"a:1": {Unreached: map[string]string{"c:1": "refused"}},
		"b:1": {Unreached: map[string]string{"a:1": "timeout", "c:1": "refused"}, Findings: []status.Finding{{Check: "key", Text: "it is loose", Do: "tighten it"}}},
	}
	want := `c:1 has been down for 3m: start it, or livetree cluster remove it
b:1: it is loose: tighten it
b:1: it does not reach a:1, which runs: timeout: look at the network between the two, and at their keys
d:1: it was not examined: it did not answer in time, or its version knows no doctor: try again, or upgrade it
the nodes have different versions: v1 on a:1; v2 on b:1: bring all to the newest one, one after the other
`
	if got := lines(t, doctor.Compare(c, exams)); !strings.HasSuffix(got, "examined\n"+want) {
		t.Errorf("the doctor says\n%s\nwant\n%s", got, want)
	}
	well := &status.Cluster{Nodes: c.Nodes[:1]}
	if got := lines(t, doctor.Compare(well, map[string]status.Examination{"a:1": {}})); !strings.HasSuffix(got, "nothing is wrong\n") {
		t.Errorf("of a cluster that is well the doctor says\n%s", got)
	}
}
