package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/livetree/livetree/internal/pause"
)

// promise says to a node that this one will not found a cluster, so that it may.
func (m *Membership) promise(to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.phase != asks || m.file.Cluster != "":
		return errors.New("this node founds a cluster itself, or belongs to one")
	case m.hasStore:
		return errors.New("this node has data of its own")
	case !slices.Contains(m.o.List, to):
		return errors.New("it is not in the list of this node")
	case m.promised != "" && m.promised != to:
		return fmt.Errorf("this node has promised %s not to found a cluster", m.promised)
	}
	m.promised = to
	return nil
}

// found founds a cluster of this node alone, which the others join.
func (m *Membership) found(ctx context.Context) (wait string, err error) {
	if wait = m.beginFounding(ctx); wait == "" {
		for _, node := range m.o.List {
			if node == m.o.Front.Addr() {
				continue
			}
			if wait = m.ask.promise(ctx, node); wait != "" {
				break
			}
		}
	}
	if wait != "" {
		m.update(func() { m.phase = asks })
		return wait, nil
	}
	f := file{Cluster: random(), Founder: m.o.Front.Addr(), Founding: true}
	if !m.hasStore {
		f.Forming = m.o.List
	}
	if err := clearForFounding(m, f); err != nil {
		return "", err
	}
	if err := m.start(ctx, []string{m.o.Front.Addr()}, true); err != nil {
		return "", err
	}
	for {
		if _, err := m.Log().Heads(ctx); err == nil {
			break
		}
		if err := pause.For(ctx, askPause/10); err != nil {
			return "", err
		}
	}
	f.Founding = false
	if err := m.writeFile(f); err != nil {
		return "", err
	}
	m.update(func() { m.phase, m.founded = isMember, true })
	m.o.Logger.Info("this node has founded a cluster", "cluster", f.Cluster, "data", m.hasStore)
	return "", nil
}

// clearForFounding notes that a founding begins, and clears away what there is of another cluster. That comes before there is a log: once there is one, a process
// that ends, and starts again, goes on with what it finds.
func clearForFounding(m *Membership, founding file) error {
	if err := m.writeFile(founding); err != nil {
		return err
	}
	if m.hasStore && m.o.Forget != nil {
		if err := m.o.Forget(); err != nil {
			return err
		}
	}
	return os.RemoveAll(LogDir(m.o.Data))
}

// beginFounding has this node promise nothing to others, unless it has. A promise ends when the node that it was
// given to neither founds a cluster nor belongs to one.
func (m *Membership) beginFounding(ctx context.Context) (wait string) {
	m.mu.Lock()
	to := m.promised
	if to == "" {
		m.phase = founds
	}
	m.mu.Unlock()
	if to == "" {
		return ""
	}
	h, err := m.ask.hello(ctx, to)
	if err != nil || h.Phase != asks || h.Cluster != "" {
		return "for " + to + ", which founds the cluster"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promised = ""
	return "for the others to promise that they found no cluster"
}

// promise asks a node to found nothing, and returns why it does not promise that.
func (a asker) promise(ctx context.Context, node string) (wait string) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := a.front.Call(ctx, node, promiseCall, nil); err != nil {
		return fmt.Sprintf("for %s to promise that it founds no cluster: %v", node, err)
	}
	return ""
}
