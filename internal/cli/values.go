package cli

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Choice is one of some words.
type Choice struct {
	Word  string
	Words []string
}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Word }

// Type implements pflag.Value.
func (c *Choice) Type() string { return strings.Join(c.Words, "|") }

// Set implements pflag.Value.
func (c *Choice) Set(text string) error {
	if !slices.Contains(c.Words, text) {
		return fmt.Errorf("it must be one of %s", strings.Join(c.Words, ", "))
	}
	c.Word = text
	return nil
}

// A HostPort is an address to listen on, or empty.
type HostPort string

// String implements pflag.Value.
func (h *HostPort) String() string { return string(*h) }

// Type implements pflag.Value.
func (h *HostPort) Type() string { return "host:port" }

// Set implements pflag.Value.
func (h *HostPort) Set(text string) error {
	*h = HostPort(text)
	if text == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return errors.New("it must be HOST:PORT, such as 127.0.0.1:9000 or :9000")
	}
	return nil
}

// A Duration is a time that something may take.
type Duration time.Duration

// String implements pflag.Value.
func (t *Duration) String() string { return ShortDuration(time.Duration(*t)) }

// Type implements pflag.Value.
func (t *Duration) Type() string { return "time" }

// Set implements pflag.Value.
func (t *Duration) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("it must be a time above 0 such as 500ms, 30s or 2m")
	}
	*t = Duration(d)
	return nil
}

// An Interval is a time after which something comes again; 0 for never.
type Interval time.Duration

// String implements pflag.Value.
func (i *Interval) String() string { return ShortDuration(time.Duration(*i)) }

// Type implements pflag.Value.
func (i *Interval) Type() string { return "time" }

// Set implements pflag.Value.
func (i *Interval) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("it must be a time such as 24h or 168h, or 0 for never")
	}
	*i = Interval(d)
	return nil
}

// ShortDuration is Duration.String without the units that are zero at its end.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// A ByteSize is a number of bytes with a unit.
type ByteSize int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// String implements pflag.Value.
func (s *ByteSize) String() string {
	for i := len(units) - 3; s != nil && i >= 0; i-- {
		if u := units[i]; int64(*s) >= u.bytes && int64(*s)%u.bytes == 0 {
			return strconv.FormatInt(int64(*s)/u.bytes, 10) + u.suffix
		}
	}
	if s == nil {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10) + "B"
}

// Type implements pflag.Value.
func (s *ByteSize) Type() string { return "size" }

// Set implements pflag.Value.
func (s *ByteSize) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = ByteSize(n * u.bytes)
		return nil
	}
	return errors.New("it must be a number with B, KiB, MiB or GiB")
}
