package proof

// Canary reports whether data is what nobody guesses, but who looks which branches
// are taken finds byte by byte. It is a bug on purpose: see FuzzCanary.
//
// It must not become a part of its caller: an external test package is not
// instrumented, and nobody would see the branches.
//
//go:noinline
func Canary(data []byte) bool {
	if len(data) < 3 || data[0] != 'g' {
		return false
	}
	if data[1] != 'a' {
		return false
	}
	return data[2] == 's'
}
