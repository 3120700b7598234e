package etcdlog

import (
	"errors"
	"strings"
	"testing"
)

func TestWhoIsOdd(t *testing.T) {
	refused := errors.New("start of etcd: 8e9e found data inconsistency with peers")
	for _, test := range []struct {
		name   string
		hashes []uint32 // of other members that differ
		want   error
	}{
		{"two others agree", []uint32{7, 7}, ErrOdd},
		{"all differ", []uint32{7, 8}, ErrDiffers},
		{"one other differs", []uint32{7}, ErrDiffers},
		{"four others agree", []uint32{7, 7, 7, 7}, ErrOdd},
		{"three others do not agree", []uint32{7, 7, 8}, ErrDiffers},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d differences
			for i, hash := range test.hashes {
				fields := map[string]any{otherPeer: i, otherValue: hash, otherAddrs: []string{"https://10.0.0.1:9100"}}
				d.note("something else", fields)
				d.note(otherHash, fields)
				d.note(otherHash, fields) // it may be said twice of one member
			}
			err := d.judge(refused)
			if !errors.Is(err, test.want) || !errors.Is(err, refused) || !strings.Contains(err.Error(), "10.0.0.1:9100") {
				t.Errorf("judge = %v, want %v with the cause and the address", err, test.want)
			}
		})
	}
	var d differences
	other := errors.New("crc mismatch")
	if err := d.judge(other); !errors.Is(err, other) || errors.Is(err, ErrOdd) || errors.Is(err, ErrDiffers) {
		t.Errorf("judge of another error = %v", err)
	}
}
