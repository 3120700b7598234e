package shard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// scripted answers appends and pages one after the other, and the last one for ever.
type scripted struct {
	shard.Log
	appends []error
	pages   []shard.Page
	trimmed bool
	sent    int
}

func (l *scripted) Append(context.Context, int, shard.Head, shard.Head, []byte) (int64, error) {
	l.sent++
	err := l.appends[0]
	if len(l.appends) > 1 {
		l.appends = l.appends[1:]
	}
	return 42, err
}

func (l *scripted) Page(context.Context, int, uint64) (shard.Page, error) {
	if l.trimmed {
		return shard.Page{}, shard.ErrTrimmed
	}
	page := l.pages[0]
	if len(l.pages) > 1 {
		l.pages = l.pages[1:]
	}
	return page, nil
}

func TestSettle(t *testing.T) {
	page := func(text string) shard.Page {
		return shard.Page{Entries: []shard.Entry{{Number: 1, Revision: 7, Record: []byte(text)}}}
	}
	large := errors.New("too large")
	tests := []struct {
		name     string
		log      scripted
		want     error
		revision int64
	}{
		{"appended", scripted{appends: []error{nil}}, nil, 42},
		{"refused for a while", scripted{appends: []error{shard.ErrAgain, shard.ErrAgain, nil}}, nil, 42},
		{"sent again", scripted{appends: []error{shard.ErrUnknown, nil}}, nil, 42},
		{"refused, and is there", scripted{appends: []error{shard.ErrUnknown, shard.ErrStale}, pages: []shard.Page{page("mine")}}, nil, 7},
		{"refused at once, and is there", scripted{appends: []error{shard.ErrStale}, pages: []shard.Page{page("mine")}}, nil, 7},
		{"refused, and is another", scripted{appends: []error{shard.ErrUnknown, shard.ErrStale}, pages: []shard.Page{page("other")}}, shard.ErrStale, 0},
		{"the page lags", scripted{appends: []error{shard.ErrStale}, pages: []shard.Page{{}, {}, page("mine")}}, nil, 7},
		{"trimmed", scripted{appends: []error{shard.ErrStale}, trimmed: true}, shard.ErrUnknown, 0},
		{"never known", scripted{appends: []error{shard.ErrUnknown, shard.ErrAgain}}, shard.ErrUnknown, 0},
		{"always refused", scripted{appends: []error{shard.ErrAgain}}, shard.ErrAgain, 0},
		{"the page never comes", scripted{appends: []error{shard.ErrStale}, pages: []shard.Page{{}}}, shard.ErrUnknown, 0},
		{"an error of another kind", scripted{appends: []error{large}}, large, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var none shard.Head
				head, err := shard.Settle(ctx, &test.log, 0, none, none.After(1, []byte("mine")), []byte("mine"))
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || head.Revision != test.revision {
					t.Errorf("Settle = revision %d, %v, want %d, %v", head.Revision, err, test.revision, test.want)
				}
				if test.log.sent > 100 {
					t.Errorf("the record was sent %d times in ten seconds", test.log.sent)
				}
			})
		})
	}
}
