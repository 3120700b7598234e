package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxKeyBytes = 768
	maxDepth    = 32 // keys in a path; .priority is not a key
)

// CheckPath returns an error when a path is too deep or holds an invalid key.
func CheckPath(path []string) error {
	if len(path) > maxDepth {
		return fmt.Errorf("path of %d keys", len(path))
	}
	for _, key := range path {
		if err := checkKey(key); err != nil {
			return fmt.Errorf("invalid key %q: %w", key, err)
		}
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("empty")
	case len(key) > maxKeyBytes:
		return fmt.Errorf("%d bytes long", len(key))
	case !utf8.ValidString(key):
		return errors.New("not valid UTF-8")
	case strings.ContainsAny(key, ".$#[]/"):
		return errors.New("one of . $ # [ ] /")
	case strings.ContainsFunc(key, isControl):
		return errors.New("control character")
	}
	return nil
}

func isControl(r rune) bool {
	return r <= 0x1F || r == 0x7F
}

// CompareKeys orders keys: those that look like an int32 first, by value, then by
// length, then by bytes; all others after them, as [CompareStrings] orders them.
func CompareKeys(a, b string) int {
	aInt, aOK := parseInt32(a)
	bInt, bOK := parseInt32(b)
	switch {
	case aOK && bOK:
		return cmp.Or(
			cmp.Compare(aInt, bInt),
			cmp.Compare(len(a), len(b)),
			cmp.Compare(a, b),
		)
	case aOK:
		return -1
	case bOK:
		return +1
	}
	return CompareStrings(a, b)
}

// parseInt32 reads a key such as 7, 007, -5 or -0. +5 is none.
func parseInt32(key string) (int32, bool) {
	if key == "" || strings.IndexByte("-0123456789", key[0]) < 0 {
		return 0, false
	}
	i, err := strconv.ParseInt(key, 10, 32)
	return int32(i), err == nil
}

// CompareStrings orders strings by UTF-16 code unit, as JavaScript does.
func CompareStrings(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// keyDigits are the digits of push keys, in their order.
const keyDigits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// KeyTime returns the time that a push key carries in the first 8 of its 20 digits;
// ok is false for a key that does not have that form.
func KeyTime(key string) (millis int64, ok bool) {
	if len(key) != 20 {
		return 0, false
	}
	for i := range len(key) {
		digit := strings.IndexByte(keyDigits, key[i])
		if digit < 0 {
			return 0, false
		}
		if i < 8 {
			millis = millis*64 + int64(digit)
		}
	}
	return millis, true
}
