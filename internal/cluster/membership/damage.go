package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// damagedLog is where etcd's files are kept that were damaged.
const damagedLog = "etcd.damaged"

// damageTexts are what etcd says of files that nobody but the disk can have changed. What it says of differences between members
// is not among them: it blames the one that starts, which may be the one that is right. etcdlog.ErrOdd says that it is not.
var damageTexts = []string{"crc mismatch", "wal: slice bounds out of range", "wal: file not found", "snap: empty snapshot", "snap: crc"}

// setLogAside sets etcd's files aside if an error says that they are damaged. The node then joins as another member, with the store
// that it has: what the log has had is on a majority of the others.
// Without a member that answers nothing is moved: the files may be all that is left.
func setLogAside(ctx context.Context, m *Membership, err error) (wait string, _ error) {
	isDamaged := slices.ContainsFunc(damageTexts, func(text string) bool { return strings.Contains(err.Error(), text) })
	if !isDamaged && !errors.Is(err, etcdlog.ErrOdd) {
		return "", err
	}
	answers, _ := m.ask.hellos(ctx, m.o.List)
	if v, _ := existing(m.hello(), answers); len(v.via) == 0 {
		return "", fmt.Errorf("the files of the log are damaged, and no other member answers: start the others first: %w", err)
	}
	aside := filepath.Join(m.o.Data, damagedLog)
	if removeErr := os.RemoveAll(aside); removeErr != nil {
		return "", removeErr
	}
	if moveErr := os.Rename(LogDir(m.o.Data), aside); moveErr != nil {
		return "", moveErr
	}
	m.o.Logger.Error("the files of the log are damaged: they are set aside, and this node joins as another member; check its disk", "aside", aside, "error", err)
	return "to join as another member", nil
}
