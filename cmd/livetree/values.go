package main

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

// logKeep is how long and how large the change log may get: 1h,64MiB.
type logKeep store.LogKeep

func (k *logKeep) String() string {
	return cli.ShortDuration(k.Age) + "," + (*cli.ByteSize)(&k.DatabaseBytes).String()
}

func (k *logKeep) Type() string { return "time,size" }

func (k *logKeep) Set(text string) error {
	age, size, ok := strings.Cut(text, ",")
	var t cli.Duration
	var b cli.ByteSize
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
