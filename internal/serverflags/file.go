package serverflags

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/cli"
)

// maxConfig bounds a file of settings.
const maxConfig = 1 << 20

// SettleFile gives each flag that has no value yet that of its key in a TOML file.
// Every key of the file must be that of a flag that is a setting, and its value of the right type.
func SettleFile(flags *pflag.FlagSet, name string, isSetting func(*pflag.Flag) bool) error {
	text, err := cli.ReadText(name, maxConfig)
	if err != nil {
		return err
	}
	if len(text) > maxConfig {
		return fmt.Errorf("%s is larger than %d bytes", name, maxConfig)
	}
	values := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &values); err != nil {
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := bad.Position()
			return fmt.Errorf("%s:%d:%d: %s", name, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, key := range keysIn([]byte(text)) {
		at := fmt.Sprintf("%s:%d", name, key.Line)
		f := flags.Lookup(key.name)
		if f != nil && !isSetting(f) {
			return fmt.Errorf("%s:%d: %s is a flag that cannot be in the file", at, key.Column, key.name)
		}
		if f == nil {
			return fmt.Errorf("%s:%d: unknown key %q%s", at, key.Column, key.name, suggestion(flags, key.name))
		}
		if err := setFrom(f, values[key.name], at); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", at, key.Column, key.name, err)
		}
	}
	return nil
}

func suggestion(flags *pflag.FlagSet, name string) string {
	if name == "secret" {
		return ": secrets do not belong in the file; set LIVETREE_SECRET"
	}
	if similar := cli.SimilarFlag(flags, name); similar != "" {
		return fmt.Sprintf(": did you mean %q?", similar)
	}
	return "; livetree docs configuration lists the keys"
}

// setFrom sets a flag that has no value yet to one of the file.
func setFrom(f *pflag.Flag, value any, at string) error {
	texts, err := textsOf(f, value)
	if err != nil || f.Changed {
		return err
	}
	for _, text := range texts {
		if err := cli.Set(f, text); err != nil {
			return err
		}
	}
	f.Changed = true
	cli.SetOrigin(f, cli.OriginFile, at)
	return nil
}

// A keyAt is a key of the file and where it first stands.
type keyAt struct {
	name string
	unstable.Position
}

// keysIn returns the keys of a valid file in their order, of nested ones the first
// part.
func keysIn(text []byte) []keyAt {
	var keys []keyAt
	var p unstable.Parser
	p.Reset(text)
	inTable := false
	for p.NextExpression() {
		expression := p.Expression()
		isTable := expression.Kind == unstable.Table || expression.Kind == unstable.ArrayTable
		if !isTable && inTable {
			continue
		}
		inTable = isTable
		parts := expression.Key()
		if !parts.Next() {
			continue
		}
		first := parts.Node()
		if name := string(first.Data); !slices.ContainsFunc(keys, func(k keyAt) bool { return k.name == name }) {
			keys = append(keys, keyAt{name, p.Shape(first.Raw).Start})
		}
	}
	return keys
}

// textsOf returns a value of the file as a flag would be given it, once or several
// times.
func textsOf(f *pflag.Flag, value any) ([]string, error) {
	wanted := "a string"
	switch f.Value.Type() {
	case cli.TypeBool:
		if b, ok := value.(bool); ok {
			return []string{fmt.Sprint(b)}, nil
		}
		wanted = "true or false"
	case cli.TypeCount:
		if n, ok := value.(int64); ok {
			return []string{fmt.Sprint(n)}, nil
		}
		wanted = "a whole number"
	case cli.TypeList:
		if texts, ok := stringsIn(value); ok {
			return texts, nil
		}
		wanted = "an array of strings"
	case TypeHosts:
		if texts, ok := pairsIn(value); ok {
			return texts, nil
		}
		wanted = "a table of strings"
	default:
		if s, ok := value.(string); ok {
			return []string{s}, nil
		}
	}
	return nil, fmt.Errorf("it must be %s, not %s", wanted, typeName(value))
}

func stringsIn(value any) ([]string, bool) {
	array, ok := value.([]any)
	texts := make([]string, 0, len(array))
	for _, element := range array {
		s, isString := element.(string)
		ok = ok && isString
		texts = append(texts, s)
	}
	return texts, ok
}

func pairsIn(value any) ([]string, bool) {
	table, ok := value.(map[string]any)
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		s, isString := table[key].(string)
		ok = ok && isString
		pairs = append(pairs, key+"="+s)
	}
	return pairs, ok
}

func typeName(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
