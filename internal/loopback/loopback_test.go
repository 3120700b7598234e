package loopback_test

import (
	"testing"

	"github.com/livetree/livetree/internal/loopback"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.10": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "127.example.com": false, "localhost.example.com": false, "0.0.0.0": false, "::": false, "[::1]": false,
		"192.168.0.1": false, "127.1": false, "2130706433": false,
	} {
		if got := loopback.Host(host); got != want {
			t.Errorf("Host(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for addr, want := range map[string]bool{
		"localhost:9000": true, "127.0.0.1:0": true, "[::1]:9000": true,
		":9000": false, "0.0.0.0:9000": false, "[::]:9000": false, "127.0.0.1": false, "::1:9000": false, "127.example.com:80": false,
	} {
		if got := loopback.Address(addr); got != want {
			t.Errorf("Address(%q) = %v, want %v", addr, got, want)
		}
	}
}
