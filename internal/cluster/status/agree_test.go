package status_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cluster/status"
)

// TestDisagreements: what is not the same on all nodes is named, by its flag and the nodes, and never by its value.
func TestDisagreements(t *testing.T) {
	t.Parallel()
	one := map[string]string{"issuer": "https://a.example,https://b.example", "dialect": "spec", "domain": ""}
	same := map[string]string{"issuer": "https://b.example,https://a.example", "dialect": "spec", "domain": ""}
	other := map[string]string{"issuer": "https://c.example", "dialect": "firebase", "domain": ""}
	settings := map[string]map[string]string{
		"10.0.0.1:9100": status.Hashes(one), "10.0.0.2:9100": status.Hashes(same), "10.0.0.3:9100": status.Hashes(same),
	}
	if got := status.Disagreements(settings); len(got) > 0 {
		t.Errorf("the same settings differ: %q", got)
	}
	settings["10.0.0.2:9100"] = status.Hashes(other)
	want := []string{
		"--dialect is not the same on all nodes: one value at 10.0.0.1:9100, 10.0.0.3:9100; another at 10.0.0.2:9100: start all with the same",
		"--issuer is not the same on all nodes: one value at 10.0.0.1:9100, 10.0.0.3:9100; another at 10.0.0.2:9100: start all with the same",
	}
	if got := status.Disagreements(settings); !slices.Equal(got, want) {
		t.Errorf("other settings are told as\n%q, want\n%q", got, want)
	}
	settings["10.0.0.2:9100"] = nil
	if got := status.Disagreements(settings); len(got) > 0 {
		t.Errorf("a node that tells nothing differs: %q", got)
	}
	for name, hash := range status.Hashes(one) {
		if len(hash) != 16 || one[name] != "" && strings.Contains(hash, one[name]) {
			t.Errorf("the hash of %s is %q", name, hash)
		}
	}
	if hashes := status.Hashes(map[string]string{"domain": "x", "dialect": "x", "addr": ":9000"}); hashes["domain"] == hashes["dialect"] || len(hashes) != 2 {
		t.Errorf("two settings of one value, and one that may differ, have the hashes %v", hashes)
	}
}
