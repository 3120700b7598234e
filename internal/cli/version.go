package cli

import (
	"cmp"
	"runtime/debug"
)

// Version returns the version of this program: the one that the linker set, that of
// the module, or the commit that it was built from.
func Version(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(linked, "unknown")
	}
	built := info.Main.Version
	if built == "(devel)" {
		built = ""
	}
	return cmp.Or(linked, built, buildSetting(info, "vcs.revision"), "unknown")
}

func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
