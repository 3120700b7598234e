//go:build no_cluster

package etcdlog_test

import (
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

func TestStartSaysThatTheClusterIsLeftOut(t *testing.T) {
	if m, err := etcdlog.Start(etcdlog.Options{}); m != nil || !errors.Is(err, etcdlog.ErrLeftOut) {
		t.Errorf("Start = %v, %v, want ErrLeftOut", m, err)
	}
}
