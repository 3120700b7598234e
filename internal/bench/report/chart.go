package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Sizes of the chart, in pixels.
const (
	chartLeft, chartRight = 190, 90 // of the names, and of the figures
	chartPlot             = 560
	rowHeight, barHeight  = 26, 14
)

// WriteChart writes the report as one HTML page that needs nothing else: bars of
// the ratios with their goals, and all figures as tables.
func (r Report) WriteChart(w io.Writer) error {
	var b strings.Builder
	b.WriteString(chartHead)
	fmt.Fprintf(&b, "<h1>Livetree next to a bare server</h1>\n<p>%s, %s, %s/%s, %d cores, %s of memory; load %.1f before and %.1f after. %d rounds.</p>\n",
		html.EscapeString(r.Version), r.Started.Format("2006-01-02 15:04 MST"), r.Machine.OS, r.Machine.Arch, r.Machine.Cores,
		bytesText(float64(r.Machine.MemoryBytes)), r.Machine.Load[0], r.Machine.Load[1], r.Rounds)
	r.chartRatios(&b)
	r.chartFigures(&b)
	r.chartGrowth(&b)
	if text := r.Tables(); text != "" {
		fmt.Fprintf(&b, "<h2>Growth, stalls and writers</h2>\n<pre>%s</pre>\n", html.EscapeString(text))
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const chartHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>livetree bench</title>
<style>
body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
svg text { font: 12px system-ui, sans-serif; fill: #222; }
table { border-collapse: collapse; } td, th { padding: 3px 10px; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child, td:last-child { text-align: left; }
.met { fill: #3b8a5a; } .missed { fill: #c2452d; } .free { fill: #5b7fa6; }
</style></head><body>
`

// chartRatios draws a bar for each ratio of processor time, its spread as a thin
// line, and its goals as marks.
func (r Report) chartRatios(b *strings.Builder) {
	var rows []Result
	most := 2.0
	for _, result := range r.Results {
		if result.CPURatio != nil {
			rows = append(rows, result)
			most = max(most, result.CPURatio.High, result.Goal.CPU[0])
		}
	}
	if len(rows) == 0 {
		return
	}
	most = math.Ceil(most)
	x := func(ratio float64) float64 { return chartLeft + ratio/most*chartPlot }
	height := len(rows)*rowHeight + 40
	fmt.Fprintf(b, "<h2>Processor time of the server per request, as a multiple of the bare server's</h2>\n<svg width=\"%d\" height=\"%d\" role=\"img\">\n",
		chartLeft+chartPlot+chartRight, height)
	step := max(1, math.Ceil(most/10))
	for tick := 0.0; tick <= most; tick += step {
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%gx</text>\n",
			x(tick), x(tick), height-30, x(tick), height-14, tick)
	}
	for i, result := range rows {
		chartRow(b, result, float64(i*rowHeight), x)
	}
	b.WriteString("</svg>\n<p>Black mark: the goal. Grey mark: what is aimed at beyond it. Thin line: the rounds from least to most.</p>\n")
}

func chartRow(b *strings.Builder, r Result, top float64, x func(float64) float64) {
	class := "free"
	if r.Goal.CPU[0] > 0 {
		class = "met"
		if r.CPURatio.Median > r.Goal.CPU[0] {
			class = "missed"
		}
	}
	y := top + (rowHeight-barHeight)/2
	middle := y + barHeight/2
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", chartLeft-8, middle+4, html.EscapeString(r.Name))
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>%s</title></rect>",
		class, chartLeft, y, x(r.CPURatio.Median)-chartLeft, barHeight, html.EscapeString(r.About))
	fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#222\"/>", x(r.CPURatio.Low), x(r.CPURatio.High), middle, middle)
	for i, colour := range []string{"#000", "#999"} {
		if goal := r.Goal.CPU[i]; goal > 0 {
			fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"/>",
				x(goal), x(goal), y-3, y+barHeight+3, colour)
		}
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%.2fx</text>\n", x(max(r.CPURatio.High, r.Goal.CPU[0]))+8, middle+4, r.CPURatio.Median)
}

// chartFigures writes all figures of both servers.
func (r Report) chartFigures(b *strings.Builder) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString("<h2>Figures</h2>\n<table><tr>")
	for _, name := range []string{"scenario", "server", "CPU", "per second", "p50", "p99", "allocations", "allocated", "memory", "peak growth", "idle stream", ""} {
		fmt.Fprintf(b, "<th>%s</th>", name)
	}
	b.WriteString("</tr>\n")
	for _, result := range r.Results {
		figuresRow(b, result.Name, "livetree", result.About, result.Livetree)
		if result.Bare != nil {
			figuresRow(b, "", "bare", "", *result.Bare)
		}
	}
	b.WriteString("</table>\n")
}

func figuresRow(b *strings.Builder, name, server, about string, f Figures) {
	b.WriteString("<tr>")
	for _, text := range []string{name, server, timeText(f.CPUMicros), countText(f.Rate), timeText(f.P50Micros), timeText(f.P99Micros), countText(f.Allocs),
		bytesText(f.AllocBytes), bytesText(f.RSSBytes), bytesText(f.PeakBytes), bytesText(f.IdleBytes), about} {
		fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(text))
	}
	b.WriteString("</tr>\n")
}
