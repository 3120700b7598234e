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
	others *differences // nil for nobody
	behind *catchUp     // nil for nobody
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
func (c *core) Enabled(l zapcore.Level) bool {
	return c.behind != nil && l == zapcore.DebugLevel || c.isLogged(l)
}

func (c *core) isLogged(l zapcore.Level) bool { return c.log.Enabled(context.Background(), levelOf(l)) }

// With implements [zapcore.Core].
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...), c.others, c.behind}
}

// harmless are what etcd warns of, or calls an error, at each founding, joining or stop of a node.
var harmless = []string{
	"setting up serving from embedded etcd failed.", "failed to update storage version", "rejecting promote learner: learner is not ready",
	"rejecting member add request; local member has not been connected to majority peers, reconfigure breaks active quorum",
	"simple token is not cryptographically signed", "Running http and grpc server on single port. This is not recommended for production.",
}

// calmed returns how much an entry matters: what is harmless does not.
func calmed(e zapcore.Entry) zapcore.Level {
	if slices.Contains(harmless, e.Message) {
		return zapcore.InfoLevel
	}
	return e.Level
}

// Check implements [zapcore.Core].
func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Message == compacted && c.behind != nil {
		c.behind.note()
	}
	if c.isLogged(calmed(e)) || e.Message == otherHash {
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
	if c.others != nil {
		c.others.note(e.Message, values.Fields)
	}
	args := make([]any, 0, 2*len(values.Fields))
	for _, name := range slices.Sorted(maps.Keys(values.Fields)) {
		args = append(args, slog.String(name, fmt.Sprint(values.Fields[name])))
	}
	c.log.Log(context.Background(), levelOf(calmed(e)), e.Message, args...) //nolint:sloglint // it is etcd's
	return nil
}

// Sync implements [zapcore.Core].
func (c *core) Sync() error { return nil }

// fatalHook ends the process when etcd cannot go on: it must not, since its disk or its log failed.
type fatalHook struct{ fatal func(text string) }

// OnWrite implements [zapcore.CheckWriteHook].
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, _ []zapcore.Field) { h.fatal(e.Message) }
