package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// FlagError says in our words what is wrong with a flag of a command, which is called
// by name.
func FlagError(name string, flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(name, flags, unknown)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s=%s: %w", invalid.GetFlag().Name, invalid.GetValue(), Spelled(invalid.GetFlag(), invalid.Unwrap()))
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value; see %s --help", missing.GetFlag().Name, name)
	}
	return err
}

func unknownFlag(name string, flags *pflag.FlagSet, unknown *pflag.NotExistError) error {
	given, flag := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		flag, _, _ = strings.Cut(short, "=")
		given = "-" + flag
	}
	hint := ""
	if similar := SimilarFlag(flags, flag); similar != "" {
		hint = ": did you mean --" + similar + "?"
	}
	return fmt.Errorf("unknown flag %s%s; %s --help lists the flags", given, hint, name)
}

// SimilarFlag returns the flag that is most like a name, or "".
func SimilarFlag(flags *pflag.FlagSet, name string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return Similar(names, name)
}

// Similar returns the name that somebody may have meant, or "".
func Similar(names []string, given string) string {
	const tooFar = 3
	best, distance := "", tooFar
	for _, name := range names {
		d := editDistance(name, given)
		if len(given) >= tooFar && strings.HasPrefix(name, given) {
			d = 1
		}
		if d < distance {
			best, distance = name, d
		}
	}
	return best
}

// editDistance returns how many letters must be added, removed, replaced or
// swapped with their neighbour to make one name the other.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1) // by the length of the parts of a and b
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
