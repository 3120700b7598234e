package places_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/archive/places"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		url string
		ok  bool
	}{
		{"file://" + dir, true},
		{"file:" + dir, true},
		{"file://localhost" + dir, true},
		{"file://" + dir + "/missing", false},
		{"file://elsewhere" + dir, false},
		{"file:relative", false},
		{"file://" + dir + "?very-secret", false},
		{dir, false},
		{"", false},
		{"http://very-secret@host/", false},
		{"s3://very-secret@bucket", false},
		{"s3://bucket", false}, // without a credential
	} {
		p, err := places.Open(t.Context(), test.url, places.Options{})
		if (err == nil) != test.ok || err != nil && strings.Contains(err.Error(), "very-secret") {
			t.Errorf("Open(%q) = %v", test.url, err)
		}
		if err == nil && p.String() != "file://"+dir {
			t.Errorf("Open(%q) is %s", test.url, p)
		}
	}
	for url, want := range map[string]bool{"s3://b": true, "file:///a": true, "/a": false, "files": false} {
		if got := places.IsURL(url); got != want {
			t.Errorf("IsURL(%q) = %v", url, got)
		}
	}
}
