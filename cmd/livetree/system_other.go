//go:build !linux && !darwin

package main

import "errors"

// diskRoom is not known here.
func diskRoom(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }

// openFiles is not known here.
func openFiles() (uint64, bool) { return 0, false }
