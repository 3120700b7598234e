package enginetest

import (
	"fmt"
	"strings"
)

// AgeRules ask for an index by age below every key of users.
const AgeRules = `{"rules": {".read": true, ".write": true, "users": {".indexOn": "age", "$group": {".indexOn": "age"}}}}`

// Collection fills /users with n records of about 250 bytes, in parts.
func (f *Fixture) Collection(n int) {
	const part = 20_000
	for start := 0; start < n; start += part {
		var b strings.Builder
		for i := start; i < min(n, start+part); i++ {
			fmt.Fprintf(&b, `,"p%07d":{"age":%d,"name":"person %d","text":%q}`, i, (i*7919)%n, i, strings.Repeat("t", 190))
		}
		f.Patch("users", "{"+b.String()[1:]+"}")
	}
}
