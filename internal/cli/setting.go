package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A setting of a command has one of these origins. The first that gives a value
// wins.
const (
	OriginFlag        = "flag"
	OriginEnvironment = "environment"
	OriginFile        = "file"
	OriginDefault     = "default"
)

// originKey is the annotation of a flag with the origin of its value, and where
// that is to be found.
const originKey = "origin"

// The types of values, for those that a file spells in another way than a flag.
const (
	TypeBool  = "bool" // as pflag calls it
	TypeCount = "count"
	TypeList  = "list"
)

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return "LIVETREE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Settle gives each flag that was not given the value of its environment variable.
// Flags that isSetting does not report have none.
func Settle(flags *pflag.FlagSet, lookup func(string) (string, bool), isSetting func(*pflag.Flag) bool) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			SetOrigin(f, OriginFlag, "--"+f.Name)
			return
		}
		value, ok := lookup(Variable(f.Name))
		if !ok || err != nil || !isSetting(f) {
			return
		}
		if setErr := Set(f, value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", Variable(f.Name), value, setErr)
		}
		f.Changed = true
		SetOrigin(f, OriginEnvironment, Variable(f.Name))
	})
	return err
}

// Origin returns where the value of a flag is from, and the flag, the variable, or
// the file with its line that it is in.
func Origin(f *pflag.Flag) (origin, place string) {
	if noted := f.Annotations[originKey]; noted != nil {
		return noted[0], noted[1]
	}
	return OriginDefault, ""
}

// IsTyped reports whether a flag was given on the command line, and not by a variable or a file.
func IsTyped(flags *pflag.FlagSet, name string) bool {
	origin, _ := Origin(flags.Lookup(name))
	return origin == OriginFlag
}

// SetOrigin notes what Origin returns.
func SetOrigin(f *pflag.Flag, origin, place string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[originKey] = []string{origin, place}
}

// Set gives a flag a value. What it does not take is told in our words.
func Set(f *pflag.Flag, text string) error {
	return Spelled(f, f.Value.Set(text))
}

// Spelled says in our words why a flag does not take a value.
func Spelled(f *pflag.Flag, err error) error {
	if err == nil {
		return nil
	}
	switch f.Value.Type() {
	case TypeBool:
		return errors.New("it must be true or false")
	case "int": // as pflag calls it, and the next
		return errors.New("it must be a whole number")
	case "duration":
		return errors.New("it must be a time such as 500ms, 30s or 2m")
	}
	return err
}

// A List collects texts; the environment separates them by commas.
type List []string

// String implements pflag.Value, as the methods below do.
func (l *List) String() string { return strings.Join(*l, ",") }

// Type names the value.
func (l *List) Type() string { return TypeList }

// Set adds texts.
func (l *List) Set(text string) error {
	*l = append(*l, strings.Split(text, ",")...)
	return nil
}

// A Count is a number of things, of which there must be some.
type Count int

// String implements pflag.Value, as the methods below do.
func (c *Count) String() string { return strconv.Itoa(int(*c)) }

// Type names the value.
func (c *Count) Type() string { return TypeCount }

// Set takes a number.
func (c *Count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("it must be a whole number above 0")
	}
	*c = Count(n)
	return nil
}
