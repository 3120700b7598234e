package pause_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A day is a Foreground with a clock that the test moves.
type day struct {
	pause.Foreground
	now time.Time
}

func newDay() *day { return &day{now: time.Unix(1_800_000_000, 0)} }

// pass lets some time pass in which a request is over every 5 ms, after it took so long, and
// the background works between them, if it does. It returns the last rest.
func (d *day) pass(long, took time.Duration, works bool) (rest time.Duration) {
	for end := d.now.Add(long); d.now.Before(end); d.now = d.now.Add(5 * time.Millisecond) {
		d.Observe(pause.Write, d.now, took)
		if works {
			rest = d.Rest(d.now, time.Millisecond)
		}
	}
	return rest
}

const ms = time.Millisecond

func TestForegroundLetsTheBackgroundWork(t *testing.T) {
	d := newDay()
	if rest := d.Rest(d.now, time.Minute); rest != 0 {
		t.Errorf("without any request it rests for %v, want 0", rest)
	}
	d.pass(5*time.Second, ms, false)
	if rest := d.Rest(d.now, ms); rest != ms {
		t.Errorf("at first it rests for %v after 1 ms of work, want as long", rest)
	}
	if rest := d.pass(5*time.Second, ms, true); rest != ms {
		t.Errorf("beside requests that take as long as in calm it rests for %v, want as long as it works", rest)
	}
}

func TestForegroundGoesFirst(t *testing.T) {
	d := newDay()
	d.pass(5*time.Second, ms, false)
	d.pass(2*time.Second, 40*ms, true)
	if rest := d.Rest(d.now, ms); rest != 15*ms {
		t.Errorf("beside slow requests it rests for %v after 1 ms of work, want 15 times as long", rest)
	}
	if rest := d.Rest(d.now, time.Minute); rest != time.Second {
		t.Errorf("after a minute of work it rests for %v, want 1 s at most", rest)
	}
	d.now = d.now.Add(2 * time.Second)
	if rest := d.Rest(d.now, ms); rest != 0 {
		t.Errorf("2 s after the last request it rests for %v, want 0", rest)
	}
	if rest := d.pass(5*time.Second, ms, true); rest != ms {
		t.Errorf("when requests are quick again it rests for %v, want as long as it works", rest)
	}
}

// TestForegroundKnowsABusyMachine: requests that are slow whatever the background does keep it
// from its work only for a while.
func TestForegroundKnowsABusyMachine(t *testing.T) {
	d := newDay()
	d.pass(5*time.Second, ms, false)
	if d.pass(2*time.Second, 40*ms, true); d.Share(d.now) > 0.1 {
		t.Errorf("its share is %v when requests have become slow, want the least", d.Share(d.now))
	}
	if d.pass(20*time.Second, 40*ms, true); d.Share(d.now) != 0.5 {
		t.Errorf("its share is %v when requests stay slow, want the most", d.Share(d.now))
	}
	if d.pass(20*time.Second, 80*ms, true); d.Share(d.now) > 0.1 {
		t.Errorf("its share is %v when requests are very slow, want the least", d.Share(d.now))
	}
}

// TestForegroundSeesThatNoneEnds: requests that wait for ever are not counted, but known.
func TestForegroundSeesThatNoneEnds(t *testing.T) {
	d := newDay()
	d.pass(5*time.Second, ms, true)
	d.Begin()
	d.now = d.now.Add(2 * time.Second)
	if got := d.Share(d.now); got != 1./16 {
		t.Errorf("while a request takes 2 s the share is %v, want the least", got)
	}
	d.End()
	if got := d.Share(d.now); got != 1 {
		t.Errorf("when it is over the share is %v, want 1", got)
	}
}

// TestForegroundMinds one request in ten that is slow, and not one in a hundred.
func TestForegroundMinds(t *testing.T) {
	for _, test := range []struct {
		every int
		want  float64
	}{{10, 1. / 16}, {100, 0.5}} {
		d := newDay()
		d.pass(5*time.Second, ms, false)
		for i := range 400 {
			took := ms
			if i%test.every == 0 {
				took = 50 * ms
			}
			d.pass(time.Nanosecond, took, true)
		}
		if got := d.Share(d.now); got != test.want {
			t.Errorf("with one slow request in %d its share is %v, want %v", test.every, got, test.want)
		}
	}
}

// TestForegroundJudgesKindsApart: few writes that wait count beside many reads that do not.
func TestForegroundJudgesKindsApart(t *testing.T) {
	d := newDay()
	d.pass(5*time.Second, ms, false)
	for i := range 2000 {
		d.Observe(pause.Read, d.now, ms)
		if i%50 == 0 {
			d.Observe(pause.Write, d.now, 100*ms)
		}
		d.Rest(d.now, ms)
		d.now = d.now.Add(ms)
	}
	if got := d.Share(d.now); got != 1./16 {
		t.Errorf("beside quick reads and slow writes its share is %v, want the least", got)
	}
}

func TestForegroundGetsOverAClockThatIsSetBack(t *testing.T) {
	d := newDay()
	d.pass(2*time.Second, ms, true)
	d.now = d.now.Add(-time.Hour)
	d.pass(2*time.Second, ms, false)
	if d.pass(2*time.Second, 40*ms, true); d.Share(d.now) > 0.1 {
		t.Errorf("after the clock was set back its share is %v, want the least", d.Share(d.now))
	}
}

func TestForegroundOfNobody(t *testing.T) {
	var f *pause.Foreground
	f.Observe(pause.Read, time.Unix(0, 0), time.Hour)
	if rest := f.Rest(time.Unix(0, 0), time.Hour); rest != 0 {
		t.Errorf("a nil Foreground asks for a rest of %v", rest)
	}
}
