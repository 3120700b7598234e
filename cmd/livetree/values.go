package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

// typeHosts is the type of a hostMap, which a file spells in another way than a flag.
const typeHosts = "hosts"

// hostMap collects HOST=NAME pairs; the environment separates them by commas.
type hostMap map[string]string

func (m hostMap) String() string {
	pairs := make([]string, 0, len(m))
	for _, host := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, host+"="+m[host])
	}
	return strings.Join(pairs, ",")
}

func (m hostMap) Type() string { return typeHosts }

func (m hostMap) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		host, name, ok := strings.Cut(pair, "=")
		if !ok || host == "" || name == "" {
			return errors.New("it must be HOST=NAME")
		}
		if err := catalog.CheckName(name); err != nil {
			return err
		}
		m[strings.ToLower(host)] = name
	}
	return nil
}

// proxies collects networks; the environment separates them by commas.
type proxies clientaddr.Proxies

func (p *proxies) String() string {
	texts := make([]string, 0, len(*p))
	for _, network := range *p {
		texts = append(texts, network.String())
	}
	return strings.Join(texts, ",")
}

func (p *proxies) Type() string { return cli.TypeList }

func (p *proxies) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		network, err := clientaddr.ParseProxy(part)
		if err != nil {
			return err
		}
		*p = append(*p, network)
	}
	return nil
}

// choice is one of some words.
type choice struct {
	word  string
	words []string
}

func (c *choice) String() string { return c.word }

func (c *choice) Type() string { return strings.Join(c.words, "|") }

func (c *choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("it must be one of %s", strings.Join(c.words, ", "))
	}
	c.word = text
	return nil
}

// databaseName is the name of a database, or empty.
type databaseName string

func (n *databaseName) String() string { return string(*n) }

func (n *databaseName) Type() string { return "name" }

func (n *databaseName) Set(text string) error {
	*n = databaseName(text)
	if text == "" {
		return nil
	}
	return catalog.CheckName(text)
}

// hostPort is an address to listen on, or empty.
type hostPort string

func (h *hostPort) String() string { return string(*h) }

func (h *hostPort) Type() string { return "host:port" }

func (h *hostPort) Set(text string) error {
	*h = hostPort(text)
	if _, _, err := net.SplitHostPort(text); text != "" && err != nil {
		return errors.New("it must be HOST:PORT, such as 127.0.0.1:9000 or :9000")
	}
	return nil
}

// dialect is how the interface is spoken.
type dialect string

func (d *dialect) String() string { return string(*d) }

func (d *dialect) Type() string { return "name" }

func (d *dialect) Set(text string) error {
	if text != rest.SpecDialect && text != rest.FirebaseDialect {
		return fmt.Errorf("it must be %s or %s", rest.SpecDialect, rest.FirebaseDialect)
	}
	*d = dialect(text)
	return nil
}

// level is from where on is logged.
type level slog.Level

func (l *level) String() string { return slog.Level(*l).String() }

func (l *level) Type() string { return "level" }

func (l *level) Set(text string) error {
	if (*slog.Level)(l).UnmarshalText([]byte(text)) != nil {
		return errors.New("it must be DEBUG, INFO, WARN or ERROR")
	}
	return nil
}

// share is a number of things, or 0 for a part of all.
type share int

func (s *share) String() string { return strconv.Itoa(int(*s)) }

func (s *share) Type() string { return cli.TypeCount }

func (s *share) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("it must be a whole number, or 0 for the default")
	}
	*s = share(n)
	return nil
}

// A duration is a time that something may take.
type duration time.Duration

func (t *duration) String() string { return shortDuration(time.Duration(*t)) }

func (t *duration) Type() string { return "time" }

func (t *duration) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("it must be a time above 0 such as 500ms, 30s or 2m")
	}
	*t = duration(d)
	return nil
}

// interval is a time after which something comes again; 0 for never.
type interval time.Duration

func (i *interval) String() string { return shortDuration(time.Duration(*i)) }

func (i *interval) Type() string { return "time" }

func (i *interval) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("it must be a time such as 24h or 168h, or 0 for never")
	}
	*i = interval(d)
	return nil
}

// shortDuration is Duration.String without the units that are zero at its end.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// byteSize is a number of bytes with a unit.
type byteSize int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

func (s *byteSize) String() string {
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

func (s *byteSize) Type() string { return "size" }

func (s *byteSize) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = byteSize(n * u.bytes)
		return nil
	}
	return errors.New("it must be a number with B, KiB, MiB or GiB")
}

// logKeep is how long and how large the change log may get: 1h,64MiB.
type logKeep store.LogKeep

func (k *logKeep) String() string {
	return shortDuration(k.Age) + "," + (*byteSize)(&k.DatabaseBytes).String()
}

func (k *logKeep) Type() string { return "time,size" }

func (k *logKeep) Set(text string) error {
	age, size, ok := strings.Cut(text, ",")
	var t duration
	var b byteSize
	if !ok || t.Set(age) != nil || b.Set(size) != nil || b == 0 {
		return errors.New("it must be a time and a size such as 1h,64MiB")
	}
	k.Age, k.DatabaseBytes = time.Duration(t), int64(b)
	return nil
}

// rateLimit is so many requests in a time, with how many at once: 100/s,200.
type rateLimit server.RateLimit

const rateOff = "off"

// perSecond says how many seconds a unit of time has.
var perSecond = map[string]float64{"s": 1, "m": 60, "h": 3600}

func (r *rateLimit) String() string {
	if r.PerSecond == 0 {
		return rateOff
	}
	for _, unit := range []string{"s", "m", "h"} {
		if n := r.PerSecond * perSecond[unit]; n == float64(int(n)) {
			return fmt.Sprintf("%d/%s,%d", int(n), unit, r.Burst)
		}
	}
	return fmt.Sprintf("%g/s,%d", r.PerSecond, r.Burst)
}

func (r *rateLimit) Type() string { return "rate" }

func (r *rateLimit) Set(text string) error {
	if text == rateOff {
		*r = rateLimit{}
		return nil
	}
	average, burst, hasBurst := strings.Cut(text, ",")
	number, unit, _ := strings.Cut(average, "/")
	var n cli.Count
	if perSecond[unit] == 0 || n.Set(number) != nil {
		return errors.New("it must be off or a rate such as 100/s or 600/m, and may have a burst: 100/s,500")
	}
	set := rateLimit{PerSecond: float64(n) / perSecond[unit]}
	most := n
	if unit != "s" {
		most = cli.Count(max(1, int(set.PerSecond)))
	}
	if hasBurst && most.Set(burst) != nil {
		return errors.New("its burst must be a whole number above 0: 100/s,500")
	}
	set.Burst = int(most)
	*r = set
	return nil
}
