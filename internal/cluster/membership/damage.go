package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	aside, moveErr := moveLog(m.o.Data)
	if moveErr != nil {
		return "", moveErr
	}
	m.o.Logger.Error("the files of the log are damaged: they are set aside, and this node joins as another member; check its disk", "aside", aside, "error", err)
	return "to join as another member", nil
}

// moveLog sets the files of the log of a data directory aside. Those that were set aside before are removed.
func moveLog(data string) (aside string, err error) {
	aside = filepath.Join(data, damagedLog)
	if err := os.RemoveAll(aside); err != nil {
		return aside, err
	}
	if err := os.Rename(LogDir(data), aside); err != nil {
		return aside, err
	}
	now := time.Now() //nolint:forbidigo // it is compared with the time of a file
	return aside, os.Chtimes(aside, now, now)
}

// asideEvery is how often a node sets its log aside while it runs. A machine that damages it more often is not to be trusted.
const asideEvery = time.Hour

// SetCorruptAside sets the files of the log aside of a node that has ended with ErrLogCorrupt, so that it joins as another member. It refuses a second time within an
// hour.
func SetCorruptAside(data string) (aside string, err error) {
	aside = filepath.Join(data, damagedLog)
	if info, err := os.Stat(aside); err == nil && time.Since(info.ModTime()) < asideEvery {
		return aside, fmt.Errorf("the log of this node is corrupt for the second time within an hour: check the disk and the memory of its machine; then remove %s, and start again", aside)
	}
	return moveLog(data)
}
