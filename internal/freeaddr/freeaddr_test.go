package freeaddr_test

import (
	"net"
	"testing"

	"github.com/livetree/livetree/internal/freeaddr"
)

func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, addr := range append(freeaddr.List(t, 20), freeaddr.One(t)) {
		l, err := net.Listen("tcp", addr)
		if err != nil || seen[addr] {
			t.Errorf("%s is not free, or was given twice: %v", addr, err)
			continue
		}
		seen[addr] = true
		defer l.Close()
	}
}
