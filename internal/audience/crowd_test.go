package audience_test

import (
	"net/netip"
	"testing"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/enginetest"
)

// TestCrowdOfANetwork: the clients of one network cannot take the listens of all others, and have
// many as long as nobody else wants them.
func TestCrowdOfANetwork(t *testing.T) {
	const most = 40
	f := openTiny(t)
	f.Rule(`{"rules":{".read":true}}`)
	crowd := &audience.Crowd{Max: most}
	// listen returns how many of so many listens a client of a network gets, and the client.
	listen := func(network string, count int64) (granted int, a *audience.Audience) {
		a = audience.New(f.Database, audience.Options{
			Wake: func() {}, Crowd: crowd, Client: budget.Client{Network: netip.MustParseAddr(network)},
		})
		t.Cleanup(a.Close)
		for id := range count {
			a.Listen(id, audience.ListenRequest{Path: enginetest.Path(t, "/a").Child(string(rune('a' + id)))})
			for answered := false; !answered; {
				item, ok := a.Next()
				switch answered = ok && item.Answer != nil; {
				case answered && item.Answer.Err == nil:
					granted++
				case ok && item.Event != nil && item.Event.Content != nil:
					_ = item.Event.Content.Close()
				}
			}
		}
		return granted, a
	}
	many, of := listen("192.0.2.1", most/2)
	if again, _ := listen("192.0.2.1", 5); many != most/2 || again != 0 {
		t.Errorf("a network gets %d and %d more of %d listens, want %d and 0", many, again, most, most/2)
	}
	for _, network := range []string{"192.0.2.2", "2001:db8::"} {
		if granted, _ := listen(network, most/2); granted != most/4 {
			t.Errorf("beside it another network gets %d, want %d", granted, most/4)
		}
	}
	of.Close()
	if granted, _ := listen("192.0.2.3", 3); granted != 3 {
		t.Errorf("when the first has gone, a network gets %d of 3", granted)
	}
}
