package past

import (
	"errors"
	"os"

	"github.com/livetree/livetree/internal/fault"
)

// remove gives up a moment that nobody looks at. The lock is held; empty does the rest, which
// takes long.
func (k *Keeper) remove(m *Moment) {
	delete(k.moments, m.name)
	k.trash = append(k.trash, m)
}

// empty removes what was given up. It returns when that is gone.
func (k *Keeper) empty() {
	k.emptying.Lock()
	defer k.emptying.Unlock()
	k.mu.Lock()
	trash := k.trash
	k.trash = nil
	k.mu.Unlock()
	for _, m := range trash {
		if k.isBroken() {
			return // closing what the disk failed could take for ever
		}
		if err := m.discard(); err != nil {
			k.options.Logger.Warn("remove a view of the past", "directory", m.dir, "error", err)
		}
	}
}

func (k *Keeper) isBroken() bool {
	select {
	case <-k.broken:
		return true
	default:
		return false
	}
}

// shut closes the moment, and leaves its directory.
func (m *Moment) shut() error {
	if m.Database != nil {
		m.Database.Close()
	}
	if m.store == nil {
		return nil
	}
	return m.store.Close()
}

// discard closes the moment and removes its directory, also what a restore has left beside it.
func (m *Moment) discard() error {
	return errors.Join(m.shut(), os.RemoveAll(m.dir), os.RemoveAll(m.dir+".partial"))
}

// Fatal is what ends the process, for other stores. If a disk fails a moment, no other is made,
// and whoever waits for one is told so. It does not return: what has failed stays as it is until
// the process ends.
func (k *Keeper) Fatal(int) {
	k.breaking.Do(func() { close(k.broken) })
	select {}
}

var errBroken = fault.New(fault.Unavailable, "the disk has failed a view of the past: there are none until the server is started again")
