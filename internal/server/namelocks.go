package server

import "sync"

// nameLocks are locks by name. The zero value has none held.
type nameLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // with what is closed when each is given back
}

// lock waits until a name is free and holds it until unlock is called.
func (l *nameLocks) lock(name string) (unlock func()) {
	for {
		free := l.tryLock(name)
		if free == nil {
			return func() { l.unlock(name) }
		}
		<-free
	}
}

// tryLock holds a name and returns nil, or returns what is closed when it is given back.
func (l *nameLocks) tryLock(name string) (free chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]chan struct{})
	}
	if free = l.held[name]; free == nil {
		l.held[name] = make(chan struct{})
	}
	return free
}

func (l *nameLocks) unlock(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held[name])
	delete(l.held, name)
}
