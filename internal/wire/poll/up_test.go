package poll_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/wire/frame"
)

// parameters returns those of the segments of messages, cut short, and in the order of the
// segments.
func parameters(messages []string, cut int) []string {
	var list []string
	for _, message := range messages {
		text := strings.ReplaceAll(base64.URLEncoding.EncodeToString([]byte(message)), "=", ".")
		count := (len(text) + cut - 1) / cut
		for i := range count {
			list = append(list, fmt.Sprintf("&segK=%d&tsK=%d&dK=%s", len(list), count, text[i*cut:min(len(text), (i+1)*cut)]))
		}
	}
	return list
}

func at(parameter string, k int) string {
	return strings.ReplaceAll(parameter, "K=", fmt.Sprint(k, "="))
}

// TestSegmentsInAnyOrder sends segments in random order and some twice, a few in each poll.
func TestSegmentsInAnyOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			line, address := s.begin()
			defer line.Close()
			var messages []string
			for i := range 1 + random.IntN(20) {
				messages = append(messages, fmt.Sprintf(`{"%d":"é%s"}`, i, strings.Repeat("x", random.IntN(100))))
			}
			list := parameters(messages, 1+random.IntN(40))
			for i := 0; i < len(list)-1; i++ { // no segment goes far
				j := i + random.IntN(min(10, len(list)-i))
				list[i], list[j] = list[j], list[i]
			}
			for len(list) > 0 {
				target := address
				n := min(1+random.IntN(8), len(list))
				for k, parameter := range list[:n] {
					target += at(parameter, k)
				}
				list = list[n-min(n-1, random.IntN(2)):]
				go s.get(target)
				synctest.Wait()
			}
			for _, want := range messages {
				if got, err := line.Next(); string(got) != want || err != nil {
					t.Fatalf("%q, %v, want %q", got, err, want)
				}
			}
			if last := len(messages[len(messages)-1]); s.budget.used < last || s.budget.used > last+100 {
				t.Errorf("%d bytes are taken for a message of %d", s.budget.used, last)
			}
			line.Close()
			synctest.Wait()
			if s.budget.used != 0 {
				t.Errorf("%d bytes are not given back", s.budget.used)
			}
		})
	}
}

func TestSegmentsThatEndTheLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		parameters string
		code       int
	}{
		"not base64":        {"&seg0=0&ts0=1&d0=*", 1003},
		"nothing":           {"&seg0=0&ts0=1&d0=", 1003},
		"not UTF-8":         {"&seg0=0&ts0=1&d0=_w..", 1007},
		"far ahead":         {"&seg0=257&ts0=1&d0=e30.", 1008},
		"empty segments":    {"&seg0=0&ts0=100000000&d0=", 1009},
		"an end that lacks": {"&seg0=0&ts0=1&d0=e", 1003},
	} {
		s := newSite(t)
		line, address := s.begin()
		if got := s.get(address + test.parameters); got != "pLPCommand('close');" {
			t.Errorf("%s: answered with %s", name, got)
		}
		var refused *frame.Error
		if _, err := line.Next(); !errors.As(err, &refused) || refused.Code != test.code {
			t.Errorf("%s: %v, want code %d", name, err, test.code)
		}
		if line.Close(); s.budget.used != 0 {
			t.Errorf("%s: %d bytes are not given back", name, s.budget.used)
		}
	}
	for _, bad := range []string{"&seg0=x&ts0=1&d0=e30.", "&seg0=-1&ts0=1&d0=e30.", "&seg0=0&ts0=0&d0=e30.", "&seg0=0&d0=e30.", "&%"} {
		s := newSite(t)
		line, address := s.begin()
		if answer, _ := s.fetch(address + bad); answer.StatusCode != 400 || line.Gone() {
			t.Errorf("%s: status %d, want 400", bad, answer.StatusCode)
		}
		line.Close()
	}
}

func TestSegmentsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		piece := strings.Repeat("e30x", 1<<18) // 1 MiB
		for i := range 22 {
			go s.get(fmt.Sprintf("%s&seg0=%d&ts0=100&d0=%s", address, i, piece))
			synctest.Wait()
			if line.Gone() != (i == 21) { // 16 MiB are 21.3 MiB of base64
				t.Fatalf("after %d MiB: Gone is %v", i+1, line.Gone())
			}
		}
		var refused *frame.Error
		if _, err := line.Next(); !errors.As(err, &refused) || refused.Code != frame.CodeTooBig {
			t.Errorf("%v, want code 1009", err)
		}
		if s.budget.used != 0 {
			t.Errorf("%d bytes are not given back", s.budget.used)
		}
	})
}

// TestShortMessagesCount: a message takes more memory than its text, so that many short ones
// are not for nothing.
func TestShortMessagesCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		const count = 100
		var all strings.Builder
		for i := range count {
			fmt.Fprintf(&all, "&seg%d=%d&ts%d=1&d%d=e30.", i, i, i, i)
		}
		go s.get(address + all.String())
		synctest.Wait()
		if used := s.budget.used; used < 50*count {
			t.Errorf("%d messages of 2 bytes count as %d bytes", count, used)
		}
		for range count {
			if text, err := line.Next(); string(text) != "{}" || err != nil {
				t.Fatalf("%q, %v", text, err)
			}
		}
		if line.Close(); s.budget.used != 0 {
			t.Errorf("%d bytes are not given back", s.budget.used)
		}
	})
}

// TestMessagesThatNobodyTakes: a session that is held up does not let its client fill memory.
func TestMessagesThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		defer line.Close()
		piece := strings.Repeat("e30x", 1<<18)
		for i := 0; !line.Gone(); i++ {
			if i > 60 {
				t.Fatal("messages are taken without bound")
			}
			go s.get(fmt.Sprintf("%s&seg0=%d&ts0=1&d0=%s", address, i, piece))
			synctest.Wait()
		}
		if line.Close(); s.budget.used != 0 {
			t.Errorf("%d bytes are not given back", s.budget.used)
		}
	})
}
