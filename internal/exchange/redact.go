package exchange

import "strings"

// Redact cuts a path, or a text with a path in it, where a credential begins: some clients escape the
// question mark in front of it, and so send it as a part of the path. Every path that goes to a log goes
// through here.
func Redact(text string) string {
	for _, name := range []string{"auth=", "access_token="} {
		if before, _, found := strings.Cut(text, name); found {
			text = before + name + "(redacted)"
		}
	}
	return text
}
