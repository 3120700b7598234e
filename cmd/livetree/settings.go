package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
)

// A setting of a command has one of these origins. The first that gives a value
// wins.
const (
	originFlag        = "flag"
	originEnvironment = "environment"
	originFile        = "file"
	originDefault     = "default"
)

// originKey is the annotation of a flag with the origin of its value, and where
// that is to be found.
const originKey = "origin"

// configFlag is the flag that names a file with settings.
const configFlag = "config"

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "LIVETREE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// isSetting reports whether a flag says how a command works, and not what it does
// instead of working.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != printConfigFlag
}

// settle gives each flag that was not given the value of its environment variable
// or, if the command has one, of its file.
func settle(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			setOrigin(f, originFlag, "--"+f.Name)
			return
		}
		value, ok := lookup(variable(f.Name))
		if !ok || err != nil || !isSetting(f) {
			return
		}
		if setErr := set(f, value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", variable(f.Name), value, setErr)
		}
		f.Changed = true
		setOrigin(f, originEnvironment, variable(f.Name))
	})
	if err != nil {
		return err
	}
	if f := flags.Lookup(configFlag); f != nil && f.Value.String() != "" {
		return settleFile(flags, f.Value.String())
	}
	return nil
}

func setOrigin(f *pflag.Flag, origin, place string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[originKey] = []string{origin, place}
}

// A setting is a value that a command works with.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	// Place is the flag, the variable, or the file with its line.
	Place string `json:"place,omitempty"`
}

// settings returns what settle has settled, without secrets.
func settings(flags *pflag.FlagSet) []setting {
	var all []setting
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		s := setting{Name: f.Name, Value: hideSecrets(f.Value.String()), Origin: originDefault}
		if origin := f.Annotations[originKey]; origin != nil {
			s.Origin, s.Place = origin[0], origin[1]
		}
		all = append(all, s)
	})
	return all
}

var (
	urlUser  = regexp.MustCompile(`://[^/@,]*@`)
	urlQuery = regexp.MustCompile(`(://[^?,]*)\?[^,]*`)
)

// hideSecrets takes out of a value what may be a secret: the user and the query
// of a URL.
func hideSecrets(value string) string {
	return urlQuery.ReplaceAllString(urlUser.ReplaceAllString(value, "://(hidden)@"), "$1?(hidden)")
}

// printSettings prints settings as a table, or as JSON.
func printSettings(w io.Writer, all []setting, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tORIGIN")
	for _, s := range all {
		value := s.Value
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, value, strings.TrimSpace(s.Origin+" "+s.Place))
	}
	return table.Flush()
}
