package backup_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var damageStep = flag.Int("damage.step", 5, "the damage tests harm every n-th page of 4 KiB; 1 for all")

const pageBytes = 4096

// damagePeople is more where there is time for every page.
func damagePeople(t *testing.T) int {
	t.Helper()
	switch {
	case raceEnabled:
		t.Skip("nothing here is concurrent, and Pebble is a hundred times slower under the race detector")
	case *damageStep == 1:
		return 3000
	}
	return 300
}

// A harm is something that happens to a file.
type harm struct {
	name string
	do   func(content []byte) []byte // nil deletes the file
}

// harms returns what can happen to a file of some size.
func harms(rng *rand.Rand, size int) []harm {
	list := []harm{{"delete", func([]byte) []byte { return nil }}}
	if size == 0 {
		return list
	}
	list = append(list,
		harm{"empty", func([]byte) []byte { return []byte{} }},
		harm{"halve", func(b []byte) []byte { return b[:len(b)/2] }},
		harm{"cut one byte", func(b []byte) []byte { return b[:len(b)-1] }},
		harm{"zero all", func(b []byte) []byte { return make([]byte, len(b)) }})
	pages := (size + pageBytes - 1) / pageBytes
	for page := rng.IntN(min(pages, *damageStep)); page < pages; page += *damageStep {
		at := page*pageBytes + rng.IntN(min(pageBytes, size-page*pageBytes))
		bit := byte(1) << rng.IntN(8)
		list = append(list, harm{fmt.Sprintf("flip %02x at %d", bit, at), func(b []byte) []byte { b[at] ^= bit; return b }})
	}
	return list
}

// eachHarm harms one file after the other, in each way, and restores it.
func eachHarm(t *testing.T, root string, skip func(name string) bool, judge func(file, harm string)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, name := range slices.Sorted(maps.Keys(contents(t, root))) {
		path := filepath.Join(root, name)
		if stat, err := os.Stat(path); err != nil || stat.IsDir() || skip(name) {
			continue
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range harms(rng, len(whole)) {
			replaceFile(t, path, h.do(bytes.Clone(whole)))
			judge(name, h.name)
		}
		replaceFile(t, path, whole)
	}
}

// replaceFile makes a new file: the old one may be a link that others have, too.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if content == nil {
		return
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyFindsDamage: a backup that is harmed in any way is not called whole,
// and is not restored.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.people = damagePeople(t)
	s.fill()
	dir, _ := s.take()
	s.close()
	count := 0
	eachHarm(t, dir, func(string) bool { return false }, func(file, harm string) {
		count++
		r, err := backup.Verify(t.Context(), dir, nil)
		if err == nil && r.OK {
			t.Errorf("%s of %s: Verify says that all is well", harm, file)
		}
		if err == nil && strings.HasPrefix(file, "data/") && !strings.Contains(r.String(), strings.TrimPrefix(file, "data/")) {
			t.Errorf("%s of %s: Verify does not name the file: %s", harm, file, r)
		}
		target := filepath.Join(t.TempDir(), "restored")
		if _, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{SkipContent: true}); err == nil {
			t.Errorf("%s of %s: Restore says that all is well", harm, file)
		}
		if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of %s: Restore leaves %v", harm, file, err)
		}
	})
	if r, err := backup.Verify(t.Context(), dir, nil); err != nil || !r.OK || count < 50 {
		t.Errorf("after %d harms that were undone, Verify = %v, %v", count, r, err)
	}
	stray := filepath.Join(dir, "data", "store", "000999.log")
	replaceFile(t, stray, []byte("x"))
	if r, err := backup.Verify(t.Context(), dir, nil); err != nil || r.OK || !strings.Contains(r.String(), "000999.log") {
		t.Errorf("with a file too many, Verify = %v, %v", r, err)
	}
}

// A content is what a data directory holds: databases, positions, texts, settings.
type content map[string]string

func stateOf(t *testing.T, data string) (content, error) {
	t.Helper()
	a, err := store.OpenArchive(data, store.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	found := content{"group": fmt.Sprint(a.Group)}
	var failed error
	err = a.Names(func(name string, id store.ID) bool {
		var text bytes.Buffer
		failed = a.Tree(id).Print(&text, tree.Path{}, tree.Export)
		position, err := a.Tree(id).Position()
		changes := 0
		logErr := a.Tree(id).Changes(0, func(tree.Change) bool { changes++; return true })
		settings, settingsErr := a.Tree(id).Settings()
		failed = errors.Join(failed, err, logErr, settingsErr)
		found[name] = fmt.Sprintf("%d %d %s %s", position, changes, hash(text.String()), hash(fmt.Sprint(settings)))
		return failed == nil
	})
	return found, errors.Join(err, failed)
}

var digits = regexp.MustCompile(`\d+`)

// TestCheckFindsDamage: whatever happens to a file of a data directory, Check says
// so or the content is what it was. The directory is that of a server that was
// stopped, or killed.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"stopped", "killed"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.people = damagePeople(t)
			s.fill()
			data := s.data
			if end == "killed" {
				s.waitForDurable()
				data = filepath.Join(t.TempDir(), "killed")
				if err := os.CopyFS(data, os.DirFS(s.data)); err != nil {
					t.Fatal(err)
				}
			}
			s.close()
			checkEachHarm(t, data)
		})
	}
}

func checkEachHarm(t *testing.T, data string) {
	t.Helper()
	want, err := stateOf(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := backup.Check(t.Context(), data, nil); err != nil || len(r.Findings) > 0 {
		t.Fatalf("before anything is harmed, Check = %v, %v", r, err)
	}
	outcomes := map[string]map[string]int{}
	skip := func(name string) bool {
		return strings.HasPrefix(name, "secrets/") || strings.HasPrefix(name, "tls/") // they have no checksums
	}
	eachHarm(t, data, skip, func(file, harm string) {
		kind := digits.ReplaceAllString(path.Base(file), "N")
		if outcomes[kind] == nil {
			outcomes[kind] = map[string]int{}
		}
		r, err := backup.Check(t.Context(), data, nil)
		switch {
		case err != nil:
			outcomes[kind]["refused"]++
			if !strings.Contains(file, "LIVETREE") {
				t.Errorf("%s of %s: Check = %v, want a report", harm, file, err)
			}
		case len(r.Findings) > 0:
			outcomes[kind]["found"]++
			if r.Findings[0].Advice == "" {
				t.Errorf("%s of %s: nothing is advised: %s", harm, file, r)
			}
		default:
			outcomes[kind]["unharmed"]++
			if got, err := stateOf(t, data); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s of %s: Check says that all is well, but there is %v, %v instead of %v", harm, file, got, err, want)
			}
		}
	})
	t.Log(outcomes)
	if outcomes["N.sst"]["unharmed"]+outcomes["MANIFEST-N"]["found"] == 0 && outcomes["N.sst"]["found"] == 0 {
		t.Error("nothing was harmed")
	}
}

// waitForDurable returns when the durable file knows of all commits.
func (s *stand) waitForDurable() {
	s.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // the store notes it when it comes to it
		view := s.View()
		want := fmt.Sprintf("durable group %d\n", view.Number())
		view.Release()
		text, err := os.ReadFile(filepath.Join(s.data, "durable"))
		if err == nil && string(text) == want {
			return
		}
		if time.Now().After(late) {
			s.Fatalf("the file says %q, %v, want %q", text, err, want)
		}
	}
}
