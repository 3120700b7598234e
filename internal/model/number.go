package model

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// A number is an int64 or a float64, in one form only: see normalise.

// parseNumber reads a JSON number. A literal without fraction and exponent that
// fits an int64 is exact. All others are doubles; beyond their range is an error,
// below their precision is 0.
func parseNumber(literal string) (any, error) {
	if !strings.ContainsAny(literal, ".eE") {
		if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s: %w", literal, err)
	}
	return normalise(f)
}

// normalise returns f as an int64 if it is integral and below 2^53 in size, so
// that 1.0 is 1 and -0 is 0; otherwise as it is. Not finite is an error.
func normalise(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, fmt.Errorf("number %v is out of range", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, nil
}

// add returns old + n, or n when old is not a number. Two integers are added
// exactly, unless the sum does not fit; everything else is added as doubles.
func add(old, n any) (any, error) {
	if sum := math.MaxFloat64 + math.Abs(toDouble(n)); math.IsInf(sum, 0) {
		return nil, fmt.Errorf("an increment by %v can lead out of range", n) // whatever is there
	}
	switch old.(type) {
	case int64, float64:
	default:
		return n, nil
	}
	a, aInt := old.(int64)
	b, bInt := n.(int64)
	if aInt && bInt {
		sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if sum.IsInt64() {
			return sum.Int64(), nil
		}
	}
	return normalise(toDouble(old) + toDouble(n))
}

func toDouble(number any) float64 {
	if i, ok := number.(int64); ok {
		return float64(i)
	}
	return number.(float64)
}

// formatNumber prints a number so that the text tells its kind: an integer as its
// digits, a double always with a fraction or an exponent.
func formatNumber(number any) string {
	if i, ok := number.(int64); ok {
		return strconv.FormatInt(i, 10)
	}
	f := number.(float64)
	switch {
	case f == math.Trunc(f): // 2^53 or more in size
		return strconv.FormatFloat(f, 'e', -1, 64)
	case math.Abs(f) < 1e-6: // as ECMAScript: 1e-7, where Go prints 1e-07
		return strings.Replace(strconv.FormatFloat(f, 'e', -1, 64), "e-0", "e-", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

var numberLiteral = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// FormatNumber returns how a JSON number literal is printed once it is stored.
func FormatNumber(literal string) (string, error) {
	number, err := parseLiteral(literal)
	if err != nil {
		return "", err
	}
	return formatNumber(number), nil
}

// CompareNumbers orders two JSON number literals by the exact values that are
// stored for them, whichever kind they are.
func CompareNumbers(a, b string) (int, error) {
	x, err := parseLiteral(a)
	if err != nil {
		return 0, err
	}
	y, err := parseLiteral(b)
	if err != nil {
		return 0, err
	}
	return exact(x).Cmp(exact(y)), nil
}

func parseLiteral(literal string) (any, error) {
	if !numberLiteral.MatchString(literal) {
		return nil, fmt.Errorf("%q is not a JSON number", literal)
	}
	return parseNumber(literal)
}

func exact(number any) *big.Rat {
	if i, ok := number.(int64); ok {
		return new(big.Rat).SetInt64(i)
	}
	return new(big.Rat).SetFloat64(number.(float64))
}
