//go:build unix

package trust_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// metric reads a metric without labels from the admin listener.
func (p *process) metric(t *testing.T, name string) int {
	t.Helper()
	var texts []string
	for _, name := range []string{"addr", "token"} {
		text, err := os.ReadFile(filepath.Join(p.dir, "admin", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	operator := &client{base: texts[0], http: &http.Client{Timeout: patience}}
	page := operator.must(t, request{method: "GET", target: "/metrics", header: []string{"Authorization", "Bearer " + texts[1]}}).body
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("there is no %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}

// awaitMetric returns when a metric without labels has a value.
func (p *process) awaitMetric(t *testing.T, name string, want int) {
	t.Helper()
	for late := time.Now().Add(patience); ; {
		got := p.metric(t, name)
		if got == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s stays %d, want %d", name, got, want)
		}
	}
}
