// Package acme has a real Livetree server get its certificate from Pebble, the
// authority that Let's Encrypt has for tests, over loopback. It is a module of its
// own, so that Pebble's dependencies stay out of Livetree.
package acme
