package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A curve is one line of a chart.
type curve struct {
	name, colour string
	values       []float64 // 0 for none
}

// chartGrowth draws what requests and the care of a server take, by the number of leaves.
func (r Report) chartGrowth(b *strings.Builder) {
	if len(r.Growth) < 2 {
		return
	}
	var leaves []float64
	requests := []curve{{name: "GET", colour: "#3b8a5a"}, {name: "PUT", colour: "#c2452d"}, {name: "query", colour: "#5b7fa6"}, {name: "range", colour: "#8a5b9e"}}
	care := []curve{{name: "start", colour: "#3b8a5a"}, {name: "check", colour: "#c2452d"}, {name: "backup", colour: "#5b7fa6"}, {name: "merge", colour: "#8a5b9e"}}
	for _, s := range r.Growth {
		leaves = append(leaves, float64(s.Leaves))
		for i, value := range []float64{s.Get.CPUMicros, s.Put.CPUMicros, s.Query.CPUMicros, s.Range.CPUMicros} {
			requests[i].values = append(requests[i].values, value)
		}
		for i, millis := range []float64{s.OpenMillis, s.CheckMillis, s.BackupMillis, s.MergeMillis} {
			care[i].values = append(care[i].values, millis*1000)
		}
	}
	b.WriteString("<h2>Processor time of a request, by leaves in the database</h2>\n")
	drawCurves(b, leaves, requests)
	b.WriteString("<h2>How long the rest takes, by leaves in the database</h2>\n")
	drawCurves(b, leaves, care)
}

// Sizes of a chart with curves, in pixels.
const (
	curvesLeft, curvesRight    = 70, 70
	curvesWidth, curvesHeight  = 560, 260
	curvesTop, curvesUnderline = 10, 36
)

// drawCurves draws curves over decades, in both directions. The drawing can be cut out of
// the page: it needs nothing of it.
func drawCurves(b *strings.Builder, at []float64, curves []curve) {
	low, high := math.Inf(1), 0.0
	for _, c := range curves {
		for _, value := range c.values {
			if value > 0 {
				low, high = min(low, value), max(high, value)
			}
		}
	}
	if high == 0 {
		return
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	to = max(to, from+1)
	first, last := math.Log10(at[0]), math.Log10(at[len(at)-1])
	x := func(n float64) float64 { return curvesLeft + (math.Log10(n)-first)/(last-first)*curvesWidth }
	y := func(v float64) float64 { return curvesTop + (to-math.Log10(v))/(to-from)*curvesHeight }
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n",
		curvesLeft+curvesWidth+curvesRight, curvesTop+curvesHeight+curvesUnderline)
	for tick := from; tick <= to; tick++ {
		value := math.Pow(10, tick)
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			curvesLeft, curvesLeft+curvesWidth, y(value), y(value), curvesLeft-8, y(value)+4, timeText(value))
	}
	for _, n := range at {
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0g</text>\n",
			x(n), x(n), curvesTop, curvesTop+curvesHeight, x(n), curvesTop+curvesHeight+20, n)
	}
	for _, c := range curves {
		drawCurve(b, at, c, x, y)
	}
	b.WriteString("</svg>\n")
}

func drawCurve(b *strings.Builder, at []float64, c curve, x, y func(float64) float64) {
	var points []string
	end := -1
	for i, value := range c.values {
		if value > 0 {
			points, end = append(points, fmt.Sprintf("%.1f,%.1f", x(at[i]), y(value))), i
		}
	}
	if end < 0 {
		return
	}
	fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/><text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
		c.colour, strings.Join(points, " "), x(at[end])+6, y(c.values[end])+4, c.colour, html.EscapeString(c.name))
}
