package cli

import (
	"cmp"
	"runtime/debug"
)

// Version returns the version of this program: the one that the linker set, that of
// the module, or the commit that it was built from; "devel" if it was built from a
// checkout without a note of the commit.
func Version(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(linked, "unknown")
	}
	built, checkout := info.Main.Version, ""
	if built == "(devel)" {
		built, checkout = "", "devel"
	}
	return cmp.Or(linked, built, buildSetting(info, "vcs.revision"), checkout, "unknown")
}

func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
