// Package s3 runs the tests of places against Versity's S3 gateway, a real server, over
// loopback. It is a module of its own, so that the gateway's dependencies stay out of
// Livetree.
package s3
