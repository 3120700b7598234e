package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/console"
)

func TestManual(t *testing.T) {
	t.Parallel()
	h, err := console.New(console.Options{Dir: "web"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, console.Manual, nil))
	var got struct {
		Pages []struct{ Topic, Title, Text string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s = %d, %v, want the manual as JSON", console.Manual, w.Code, err)
	}
	for _, p := range got.Pages {
		if p.Topic == "console" && strings.Contains(p.Text, "# The web console") {
			return
		}
	}
	t.Errorf("the manual has %d pages, want one about the console", len(got.Pages))
}
