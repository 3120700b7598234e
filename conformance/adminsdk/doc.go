// Package adminsdk runs the Firebase Admin SDK for Go, unmodified, against a
// real Livetree server. It is a module of its own, so that the SDK's many
// dependencies stay out of Livetree.
package adminsdk
