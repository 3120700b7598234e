package state_test

import (
	"testing"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

func TestBuildsExpiry(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		row  string
		want bool
	}{
		{``, false},
		{`{"next":2,"entries":[{"number":1,"state":"building","on":"t","pattern":["s"]}]}`, false},
		{`{"next":2,"entries":[{"number":1,"state":"ready","on":"t","pattern":["s"],"expires":true}]}`, false},
		{`{"next":3,"entries":[{"number":1,"state":"ready","on":"t","pattern":["s"]},{"number":2,"state":"building","on":"t","pattern":["s"],"expires":true}]}`, true},
	} {
		rows := store.Settings{}
		if test.row != "" {
			rows[state.SettingIndexes] = []byte(test.row)
		}
		if got, err := state.BuildsExpiry(rows); got != test.want || err != nil {
			t.Errorf("BuildsExpiry(%s) = %t, %v", test.row, got, err)
		}
	}
	if _, err := state.BuildsExpiry(store.Settings{state.SettingIndexes: []byte("x")}); err == nil {
		t.Error("a list that cannot be read is taken")
	}
}
