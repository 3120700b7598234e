package process

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Metric asks for a number that a server exports: the sum, if there are several with
// labels.
func (p *Process) Metric(ctx context.Context, name string) (float64, error) {
	text, err := p.Ask(ctx, http.MethodGet, p.Control+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range bytes.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if series, _, _ = strings.Cut(series, "{"); !ok || series != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, fmt.Errorf("the server has no metric %s", name)
	}
	return sum, nil
}
