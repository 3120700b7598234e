//go:build !no_cluster

package etcdlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestWhatEtcdSaysIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var fatal []string
	logger := zap.New(&core{log: slog.New(slog.NewTextHandler(&out, nil))}, zap.WithFatalHook(fatalHook{func(text string) { fatal = append(fatal, text) }}))
	logger.With(zap.String("a", "b")).Warn("slow", zap.Int("took", 3))
	logger.Info("not for operators")
	logger.Error("bad")
	logger.Fatal("no sync")
	for _, want := range []string{"level=WARN msg=slow a=b took=3", "level=ERROR msg=bad", `level=ERROR msg="no sync"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log is\n%swithout %s", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "operators") {
		t.Error("what etcd tells for information is shown")
	}
	if len(fatal) != 1 || fatal[0] != "no sync" {
		t.Errorf("Fatal was told %q", fatal)
	}
}

// TestFatalIsToldWhateverIsLogged has a log that takes nothing: the process must end nevertheless.
func TestFatalIsToldWhateverIsLogged(t *testing.T) {
	t.Parallel()
	told := false
	logger := zap.New(&core{log: slog.New(slog.DiscardHandler)}, zap.WithFatalHook(fatalHook{func(string) { told = true }}))
	logger.Fatal("no sync")
	if !told {
		t.Error("Fatal was not told")
	}
}

// TestSettings holds what the safety of the log rests on.
func TestSettings(t *testing.T) {
	t.Parallel()
	c, err := configuration(Options{Peer: "a:1", Listen: "127.0.0.1:0", Members: []string{"a:1", "b:2"}, Election: DefaultElection, Quota: 7, Log: slog.New(slog.DiscardHandler)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case c.UnsafeNoFsync:
		t.Error("etcd does not sync")
	case len(c.ListenClientUrls) > 0 || len(c.AdvertiseClientUrls) > 0:
		t.Error("etcd has a port for clients")
	case !c.PreVote || !c.StrictReconfigCheck:
		t.Error("etcd votes or changes members rashly")
	case c.TickMs != 50 || c.ElectionMs != 500 || c.MaxRequestBytes <= 1<<20 || c.QuotaBackendBytes != 7:
		t.Errorf("other times or bounds: %+v", c)
	case !c.ServerFeatureGate.Enabled("InitialCorruptCheck") || !c.ServerFeatureGate.Enabled("CompactHashCheck"):
		t.Error("etcd does not look for damage")
	case c.Name == "default" || strings.Count(c.InitialCluster, ",") != 1 || !strings.Contains(c.InitialCluster, c.Name+"="):
		t.Errorf("the member %s starts with %s", c.Name, c.InitialCluster)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	key := logKey(5, 0x0102030405060708)
	if want := "log/\x05/\x01\x02\x03\x04\x05\x06\x07\x08"; key != want {
		t.Errorf("the key of a record is %q, want %q", key, want)
	}
	if s, number, err := parseLogKey([]byte(key)); s != 5 || number != 0x0102030405060708 || err != nil {
		t.Errorf("it is read as %d, %d, %v", s, number, err)
	}
	if logKey(5, ^uint64(0)) >= logEnd(5) || logEnd(5) > logKey(6, 0) {
		t.Error("the end of a shard is not between it and the next")
	}
	for _, bad := range []string{"", "log/", key[1:], key + "x", "log/\x10/12345678", "log/\x05.12345678", "lot/\x05/12345678"} {
		if _, _, err := parseLogKey([]byte(bad)); err == nil {
			t.Errorf("%q is taken for the key of a record", bad)
		}
	}
}
