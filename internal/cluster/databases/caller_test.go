package databases_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/pause"
)

// TestCallersThatGoAway: who asks the home to make a database, and goes away before that is done, does not cost the home its tenure: the sessions of all
// databases of the shard would end with it.
func TestCallersThatGoAway(t *testing.T) {
	err := databasestest.Play(t, databasestest.Options{Seed: *firstSeed, Loud: *loud}, func(w *databasestest.World) error {
		home := w.Process(0)
		tenure := uint64(0)
		for i := 0; tenure == 0; i = (i + 1) % databasestest.Size {
			if number, is := w.Process(i).Node.Home(0); is {
				home, tenure = w.Process(i), number
			}
			_ = pause.For(w.Context(), time.Millisecond)
		}
		late := 0
		for i := range 100 {
			ctx, cancel := context.WithTimeout(w.Context(), time.Duration(i%20)*200*time.Microsecond)
			_, _ = home.Data.ServeCreate(ctx, fmt.Appendf(nil, "db%d", i))
			if ctx.Err() != nil {
				late++
			}
			cancel()
		}
		if late == 0 {
			return errors.New("no caller went away before it was answered")
		}
		if now, is := home.Node.Home(0); !is || now != tenure {
			return fmt.Errorf("the home was that in tenure %d, and is it in %d: %v", tenure, now, is)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
