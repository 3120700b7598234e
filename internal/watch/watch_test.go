package watch_test

import (
	"strconv"
	"strings"
)

func splitLines(text string) []string { return strings.Split(text, "\n") }

func appendInt(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
