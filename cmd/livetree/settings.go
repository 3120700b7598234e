package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/serverflags"
)

// configFlag is the flag that names a file with settings.
const configFlag = "config"

// isSetting reports whether a flag says how a command works, and not what it does
// instead of working.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != printConfigFlag
}

// settle gives each flag that was not given the value of its environment variable
// or, if the command has one, of its file.
func settle(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	if err := cli.Settle(flags, lookup, isSetting); err != nil {
		return err
	}
	if f := flags.Lookup(configFlag); f != nil && f.Value.String() != "" {
		return serverflags.SettleFile(flags, f.Value.String(), func(f *pflag.Flag) bool { return isSetting(f) && f.Name != configFlag })
	}
	return nil
}

// settings returns what settle has settled, without secrets.
func settings(flags *pflag.FlagSet) []admin.Setting {
	var all []admin.Setting
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		origin, place := cli.Origin(f)
		all = append(all, admin.Setting{Name: f.Name, Value: hideSecrets(f.Value.String()), Origin: origin, Place: place})
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
func printSettings(w io.Writer, all []admin.Setting, asJSON bool) error {
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
