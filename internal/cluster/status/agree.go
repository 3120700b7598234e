package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// agreeing are the flags that must be the same on all nodes: they change what clients are answered, or what the next node does.
var agreeing = []string{
	"acme-directory", "acme-domain", "allow-http", "archive", "archive-recipient", "audience", "default-db", "dialect", "domain", "hook-allow", "hook-retry", "host-map", "issuer", "jwks", "log-keep", "max-body", "rate-limit", "reads",
}

// Hashes returns hashes of those settings that must be the same on all nodes, by their names. The parts of a list count in any order. Whoever has a hash can tell whether a guess is right, so values that are
// secret do not belong here.
func Hashes(values map[string]string) map[string]string {
	hashes := make(map[string]string, len(agreeing))
	for _, name := range agreeing {
		value, ok := values[name]
		if !ok {
			continue
		}
		parts := strings.Split(value, ",")
		slices.Sort(parts)
		sum := sha256.Sum256([]byte(name + "=" + strings.Join(parts, ",")))
		hashes[name] = hex.EncodeToString(sum[:8])
	}
	return hashes
}

// Disagreements says which settings are not the same on all nodes, given the hashes that each of them tells, by the name of the flag. A node that does not tell
// one, as an older version may not, is not compared.
func Disagreements(settings map[string]map[string]string) (problems []string) {
	flags := map[string]bool{}
	for _, of := range settings {
		for name := range of {
			flags[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		byHash := map[string][]string{}
		for _, node := range slices.Sorted(maps.Keys(settings)) {
			if hash := settings[node][name]; hash != "" {
				byHash[hash] = append(byHash[hash], node)
			}
		}
		if len(byHash) > 1 {
			problems = append(problems, fmt.Sprintf("--%s is not the same on all nodes: one value at %s: start all with the same", name, groups(byHash)))
		}
	}
	return problems
}

// groups lists nodes that have the same, the largest group first.
func groups(byHash map[string][]string) string {
	all := slices.SortedFunc(maps.Values(byHash), func(a, b []string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b))
	})
	var texts []string
	for _, nodes := range all {
		texts = append(texts, strings.Join(nodes, ", "))
	}
	return strings.Join(texts, "; another at ")
}
