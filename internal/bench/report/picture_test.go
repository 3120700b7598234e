package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench/report"
)

// TestPicture: growth is drawn as one picture of well-formed XML, with a line for each curve that has figures.
func TestPicture(t *testing.T) {
	var b strings.Builder
	if err := (report.Report{Growth: []report.GrowthStep{{Leaves: 1000}}}).WritePicture(&b); !errors.Is(err, report.ErrNoCurves) || b.Len() > 0 {
		t.Errorf("a picture of one step: %q, %v", b.String(), err)
	}
	r := report.Report{Growth: []report.GrowthStep{
		{Leaves: 1000, Get: report.Figures{CPUMicros: 11}, Put: report.Figures{CPUMicros: 33}, CheckMillis: 36},
		{Leaves: 10000, Get: report.Figures{CPUMicros: 12}, Put: report.Figures{CPUMicros: 35}, CheckMillis: 65},
	}}
	if err := r.WritePicture(&b); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if lines != 3 {
		t.Errorf("%d lines, want those of GET, PUT and check:\n%s", lines, b.String())
	}
}
