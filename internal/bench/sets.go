package bench

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// socketWindow is how many sets a websocket has sent at most that were not answered,
// where it does not wait. SDKs have no bound.
const socketWindow = 1000

// set sends the PUTs of a load as sets of an SDK, the next one when so many are not
// answered.
func (s *socket) set(ctx context.Context, l load, window int) (volley, error) {
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	began := now()
	_ = s.SetDeadline(began.Add(requestTime * time.Duration(1+l.requests/1000))) // a closed connection fails below
	v := volley{times: make([]time.Duration, 0, l.requests)}
	var err error
	if window == 1 {
		err = s.setEach(l, &v)
	} else {
		err = s.setMany(l, window, &v)
	}
	v.took = now().Sub(began)
	slices.Sort(v.times)
	if err != nil {
		err = cause(ctx, err)
	}
	return v, err
}

// setEach waits for each answer.
func (s *socket) setEach(l load, v *volley) error {
	var r request
	for i := range l.requests {
		l.ask(&r, l.first+i)
		sent := now()
		if err := s.put(&r); err != nil {
			return err
		}
		if _, err := s.reply(); err != nil {
			return err
		}
		v.times = append(v.times, now().Sub(sent))
	}
	return nil
}

// setMany has a goroutine send while this one reads the answers.
func (s *socket) setMany(l load, window int, v *volley) error {
	sent, failed := make(chan time.Time, window), make(chan error, 1)
	go func() {
		var r request
		for i := range l.requests {
			l.ask(&r, l.first+i)
			sent <- now()
			if err := s.put(&r); err != nil {
				failed <- err
				break
			}
		}
		close(failed)
	}()
	for range l.requests {
		if _, err := s.reply(); err != nil {
			_ = s.Close() // which ends the sending
			drain(sent, failed)
			return err
		}
		v.times = append(v.times, now().Sub(<-sent))
	}
	return <-failed
}

// drain waits for the end of the sending.
func drain(sent <-chan time.Time, failed <-chan error) {
	for {
		select {
		case <-sent:
		case <-failed:
			return
		}
	}
}

// put sends a PUT as a set.
func (s *socket) put(r *request) error {
	return s.ask("p", `{"p":"%s","d":%s}`, bytes.TrimSuffix(r.target, []byte(".json")), r.body)
}
