package main

import (
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// The ways to write the log.
const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

// newLogger returns a logger that writes lines of text for people and JSON for
// programs. What looks like a secret does not get through it.
func newLogger(w io.Writer, level slog.Level, asText bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redact}
	if asText {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

const redacted = "(redacted)"

var (
	secretKeys = []string{"auth", "access_token", "authorization", "credential", "password", "secret", "token"}
	secretText = regexp.MustCompile(`(?i)((?:auth|access_token)=|\bBearer\s+)[^\s&"']+`)
)

// redact is the last line of defence: nothing should log a secret, and what does
// is stopped here, before it is formatted.
func redact(_ []string, a slog.Attr) slog.Attr {
	if slices.Contains(secretKeys, strings.ToLower(a.Key)) {
		return slog.String(a.Key, redacted)
	}
	text := ""
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		err, ok := a.Value.Any().(error)
		if !ok {
			return a
		}
		text = err.Error()
		// Those of Pebble print their stacks in a log of text, if they are let.
		a = slog.String(a.Key, text)
	default:
		return a
	}
	if !mayHoldSecret(text) {
		return a
	}
	return slog.String(a.Key, secretText.ReplaceAllString(text, "${1}"+redacted))
}

// mayHoldSecret spares most texts the regular expression.
func mayHoldSecret(text string) bool {
	return strings.Contains(text, "=") || strings.Contains(text, "earer") || strings.Contains(text, "EARER")
}
