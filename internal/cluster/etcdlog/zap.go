//go:build !no_cluster

package etcdlog

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap/zapcore"
)

// memberName is how etcd calls the member at an address.
func memberName(peer string) string {
	h := fnv.New64a()
	h.Write([]byte(peer))
	return hex.EncodeToString(h.Sum(nil))
}

// core writes what etcd logs to the log of the server. What etcd tells for information is of
// interest only to who looks for a defect.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

// levelOf says how much what etcd logs matters here.
func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l >= zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements [zapcore.Core].
func (c *core) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), levelOf(l)) }

// With implements [zapcore.Core].
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements [zapcore.Core].
func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write implements [zapcore.Core].
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(values)
	}
	for _, f := range fields {
		f.AddTo(values)
	}
	args := make([]any, 0, 2*len(values.Fields))
	for _, name := range slices.Sorted(maps.Keys(values.Fields)) {
		args = append(args, slog.String(name, fmt.Sprint(values.Fields[name])))
	}
	c.log.Log(context.Background(), levelOf(e.Level), e.Message, args...) //nolint:sloglint // it is etcd's
	return nil
}

// Sync implements [zapcore.Core].
func (c *core) Sync() error { return nil }

// fatalHook ends the process when etcd cannot go on: it must not, since its disk or its log failed.
type fatalHook struct{ fatal func(text string) }

// OnWrite implements [zapcore.CheckWriteHook].
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, _ []zapcore.Field) { h.fatal(e.Message) }
