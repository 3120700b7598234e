// Package serverflags reads what the flags of a server may be set to, beyond what package cli
// reads for all commands.
package serverflags

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// TypeHosts is the type of a HostMap, which a file spells in another way than a flag.
const TypeHosts = "hosts"

// A HostMap collects HOST=NAME pairs; the environment separates them by commas.
type HostMap map[string]string

// String, Type and Set implement pflag.Value.
func (m HostMap) String() string {
	pairs := make([]string, 0, len(m))
	for _, host := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, host+"="+m[host])
	}
	return strings.Join(pairs, ",")
}

func (m HostMap) Type() string { return TypeHosts }

func (m HostMap) Set(text string) error {
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

// Proxies collect networks; the environment separates them by commas.
type Proxies clientaddr.Proxies

// String, Type and Set implement pflag.Value.
func (p *Proxies) String() string {
	texts := make([]string, 0, len(*p))
	for _, network := range *p {
		texts = append(texts, network.String())
	}
	return strings.Join(texts, ",")
}

func (p *Proxies) Type() string { return cli.TypeList }

func (p *Proxies) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		network, err := clientaddr.ParseProxy(part)
		if err != nil {
			return err
		}
		*p = append(*p, network)
	}
	return nil
}

// A DatabaseName is the name of a database, or empty.
type DatabaseName string

// String, Type and Set implement pflag.Value.
func (n *DatabaseName) String() string { return string(*n) }

func (n *DatabaseName) Type() string { return "name" }

func (n *DatabaseName) Set(text string) error {
	*n = DatabaseName(text)
	if text == "" {
		return nil
	}
	return catalog.CheckName(text)
}

// A Dialect is how the interface is spoken.
type Dialect string

// String, Type and Set implement pflag.Value.
func (d *Dialect) String() string { return string(*d) }

func (d *Dialect) Type() string { return "name" }

func (d *Dialect) Set(text string) error {
	if text != rest.SpecDialect && text != rest.FirebaseDialect {
		return fmt.Errorf("it must be %s or %s", rest.SpecDialect, rest.FirebaseDialect)
	}
	*d = Dialect(text)
	return nil
}

// A Level is from where on is logged.
type Level slog.Level

// String, Type and Set implement pflag.Value.
func (l *Level) String() string { return slog.Level(*l).String() }

func (l *Level) Type() string { return "level" }

func (l *Level) Set(text string) error {
	if (*slog.Level)(l).UnmarshalText([]byte(text)) != nil {
		return errors.New("it must be DEBUG, INFO, WARN or ERROR")
	}
	return nil
}

// A Share is a number of things, or 0 for a part of all.
type Share int

// String, Type and Set implement pflag.Value.
func (s *Share) String() string { return strconv.Itoa(int(*s)) }

func (s *Share) Type() string { return cli.TypeCount }

func (s *Share) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("it must be a whole number, or 0 for the default")
	}
	*s = Share(n)
	return nil
}

// A LogKeep is how long and how large the change log may get: 1h,64MiB.
type LogKeep store.LogKeep

// String, Type and Set implement pflag.Value.
func (k *LogKeep) String() string {
	return cli.ShortDuration(k.Age) + "," + (*cli.ByteSize)(&k.DatabaseBytes).String()
}

func (k *LogKeep) Type() string { return "time,size" }

func (k *LogKeep) Set(text string) error {
	age, size, ok := strings.Cut(text, ",")
	var t cli.Duration
	var b cli.ByteSize
	if !ok || t.Set(age) != nil || b.Set(size) != nil || b == 0 {
		return errors.New("it must be a time and a size such as 1h,64MiB")
	}
	k.Age, k.DatabaseBytes = time.Duration(t), int64(b)
	return nil
}

// A RateLimit is so many requests in a time, with how many at once: 100/s,200.
type RateLimit server.RateLimit

const rateOff = "off"

// perSecond says how many seconds a unit of time has.
var perSecond = map[string]float64{"s": 1, "m": 60, "h": 3600}

// String, Type and Set implement pflag.Value.
func (r *RateLimit) String() string {
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

func (r *RateLimit) Type() string { return "rate" }

func (r *RateLimit) Set(text string) error {
	if text == rateOff {
		*r = RateLimit{}
		return nil
	}
	average, burst, hasBurst := strings.Cut(text, ",")
	number, unit, _ := strings.Cut(average, "/")
	var n cli.Count
	if perSecond[unit] == 0 || n.Set(number) != nil {
		return errors.New("it must be off or a rate such as 100/s or 600/m, and may have a burst: 100/s,500")
	}
	set := RateLimit{PerSecond: float64(n) / perSecond[unit]}
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
