package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageForDebian makes a package of files that only have the names of a release. scripts/try-deb.sh tries a
// real one.
func TestPackageForDebian(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.Command("sh", "-n", "../../packaging/deb/"+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
	hasSettings(t, packaged(t, "deb/default"))
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed: NO package is made")
	}
	dist := t.TempDir()
	for _, name := range []string{
		"livetree-v1.2.0-rc.1-linux-armv7", "livetree-bench-v1.2.0-rc.1-linux-armv7", "livetree.bash", "livetree.zsh", "livetree.fish", "man/livetree.1", "man/livetree-rules.7",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dist, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dist, name), name)
	}
	var made []string
	for range 2 {
		target := t.TempDir()
		c := exec.Command("../../scripts/deb.sh", "v1.2.0-rc.1", "armv7", dist, target)
		c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
		out, err := c.CombinedOutput()
		if name := strings.TrimSpace(string(out)); err != nil || name != "livetree_1.2.0~rc.1_armhf.deb" {
			t.Fatalf("deb.sh: %v: %s", err, out)
		}
		made = append(made, filepath.Join(target, "livetree_1.2.0~rc.1_armhf.deb"))
	}
	if read(t, made[0]) != read(t, made[1]) {
		t.Error("two packages of the same files differ")
	}
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-R", made[0], root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	unit := read(t, filepath.Join(root, "usr/lib/systemd/system/livetree.service"))
	if strings.Contains(unit, "DynamicUser") || !strings.Contains(unit, "\nUser=livetree\n") || !strings.Contains(unit, "\nExecStart=/usr/bin/livetree serve ") || !strings.HasPrefix(unit, "# The data is in") {
		t.Errorf("the unit is\n%s", unit)
	}
	for name, want := range map[string]string{
		"usr/bin/livetree": "livetree-v1.2.0-rc.1-linux-armv7", "DEBIAN/conffiles": "/etc/default/livetree",
		"usr/lib/systemd/system/livetree.socket": strings.TrimSpace(packaged(t, "livetree.socket")),
	} {
		if got := read(t, filepath.Join(root, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"man1/livetree.1.gz", "man7/livetree-rules.7.gz"} {
		if _, err := os.Stat(filepath.Join(root, "usr/share/man", name)); err != nil {
			t.Errorf("a man page: %v", err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "etc/default/livetree")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the settings are %v, %v: they may hold secrets", info, err)
	}
}
