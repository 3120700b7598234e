package report

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// A curve is one line of a chart.
type curve struct {
	name, colour string
	values       []float64 // 0 for none
}

// A plot is curves over the number of leaves, with what they show.
type plot struct {
	title  string
	leaves []float64
	curves []curve
}

// growthPlots returns what requests and the care of a server take, by the number of leaves.
func (r Report) growthPlots() []plot {
	if len(r.Growth) < 2 {
		return nil
	}
	requests := plot{title: "Processor time of a request, by leaves in the database", curves: []curve{
		{name: "GET", colour: "#3b8a5a"}, {name: "PUT", colour: "#c2452d"}, {name: "query", colour: "#5b7fa6"}, {name: "range", colour: "#8a5b9e"}}}
	care := plot{title: "How long the rest takes, by leaves in the database", curves: []curve{
		{name: "start", colour: "#3b8a5a"}, {name: "check", colour: "#c2452d"}, {name: "backup", colour: "#5b7fa6"}, {name: "merge", colour: "#8a5b9e"}}}
	for _, s := range r.Growth {
		requests.leaves = append(requests.leaves, float64(s.Leaves))
		for i, value := range []float64{s.Get.CPUMicros, s.Put.CPUMicros, s.Query.CPUMicros, s.Range.CPUMicros} {
			requests.curves[i].values = append(requests.curves[i].values, value)
		}
		for i, millis := range []float64{s.OpenMillis, s.CheckMillis, s.BackupMillis, s.MergeMillis} {
			care.curves[i].values = append(care.curves[i].values, millis*1000)
		}
	}
	care.leaves = requests.leaves
	return []plot{requests, care}
}

func (r Report) chartGrowth(b *strings.Builder) {
	for _, p := range r.growthPlots() {
		fmt.Fprintf(b, "<h2>%s</h2>\n", p.title)
		p.draw(b, 0)
	}
}

// ErrNoCurves is the answer to who wants a picture of a report in which nothing grows.
var ErrNoCurves = errors.New("there is nothing to draw: a picture is of --growth with at least two steps")

// WritePicture writes the curves of growth, one above the other, as one SVG picture.
func (r Report) WritePicture(w io.Writer) error {
	plots := r.growthPlots()
	if len(plots) == 0 {
		return ErrNoCurves
	}
	const title, width = 34, curvesLeft + curvesWidth + curvesRight
	each := title + curvesTop + curvesHeight + curvesUnderline
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"system-ui, sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		width, each*len(plots))
	for i, p := range plots {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" font-size=\"15\">%s</text>\n", curvesLeft, i*each+22, p.title)
		p.draw(&b, i*each+title)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Sizes of a chart with curves, in pixels.
const (
	curvesLeft, curvesRight    = 70, 70
	curvesWidth, curvesHeight  = 560, 260
	curvesTop, curvesUnderline = 10, 36
)

// draw draws the curves over decades, in both directions, so many pixels below the top of what they are in.
func (p plot) draw(b *strings.Builder, top int) {
	at, curves := p.leaves, p.curves
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
	fmt.Fprintf(b, "<svg y=\"%d\" width=\"%d\" height=\"%d\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n",
		top, curvesLeft+curvesWidth+curvesRight, curvesTop+curvesHeight+curvesUnderline)
	for tick := from; tick <= to; tick++ {
		value := math.Pow(10, tick)
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			curvesLeft, curvesLeft+curvesWidth, y(value), y(value), curvesLeft-8, y(value)+4, timeText(value))
	}
	for _, n := range at {
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0g</text>\n",
			x(n), x(n), curvesTop, curvesTop+curvesHeight, x(n), curvesTop+curvesHeight+20, n)
	}
	var names []label
	for _, c := range curves {
		if end := drawCurve(b, at, c, x, y); end >= 0 {
			names = append(names, label{c, x(at[end]) + 6, y(c.values[end]) + 4})
		}
	}
	drawLabels(b, names)
	b.WriteString("</svg>\n")
}

// drawCurve draws one, and returns the last of its values, -1 if there is none.
func drawCurve(b *strings.Builder, at []float64, c curve, x, y func(float64) float64) (end int) {
	var points []string
	end = -1
	for i, value := range c.values {
		if value > 0 {
			points, end = append(points, fmt.Sprintf("%.1f,%.1f", x(at[i]), y(value))), i
		}
	}
	if end >= 0 {
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", c.colour, strings.Join(points, " "))
	}
	return end
}

// A label is the name of a curve, where that ends.
type label struct {
	of   curve
	x, y float64
}

// drawLabels writes the names of curves, each below the one that it would be written over.
func drawLabels(b *strings.Builder, names []label) {
	slices.SortFunc(names, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	const height = 13
	for i, n := range names {
		if i > 0 {
			n.y = max(n.y, names[i-1].y+height)
			names[i] = n
		}
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", n.x, n.y, n.of.colour, html.EscapeString(n.of.name))
	}
}
