package manual_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/manual"
)

const page = "# A *page*\n" + `
<!-- for programs -->
One line with ` + "`code | <b>`" + `, **strong [link](other.md#place)** and
another: [out](https://example.com/), ![a picture](images/a.png).

- first
  goes on
- second:

  ` + "```sh\n  run <it>\n\n  twice\n  ```" + `

2. two
3. three

In
2026. A sentence.

| name | means |
|---|---|
| ` + "`a|b`" + ` | one \| two |

## Code

    indented

    code
## Code
`

func TestHTML(t *testing.T) {
	got := manual.HTML(manual.Parse(page), func(url, text string) (string, string) {
		switch {
		case url == "other.md#place":
			return "", "" // is not there
		case text == "out":
			return url, "out & away"
		}
		return url, ""
	})
	want := `<h1 id="a-page">A <em>page</em></h1>
<p>One line with <code>code | &lt;b&gt;</code>, <strong>strong link</strong> and another: <a href="https://example.com/">out &amp; away</a>, <img src="images/a.png" alt="a picture" loading="lazy">.</p>
<ul>
<li>first goes on</li>
<li><p>second:</p>
<pre tabindex="0"><code>run &lt;it&gt;

twice</code></pre>
</li>
</ul>
<ol start="2">
<li>two</li>
<li>three</li>
</ol>
<p>In 2026. A sentence.</p>
<div class="table" tabindex="0" role="region" aria-label="Table"><table>
<tr><th scope="col">name</th><th scope="col">means</th></tr>
<tr><td><code>a|b</code></td><td>one | two</td></tr>
</table></div>
<h2 id="code">Code <a class="here" href="#code" aria-label="Link to: Code">#</a></h2>
<pre tabindex="0"><code>indented

code</code></pre>
<h2 id="code-1">Code <a class="here" href="#code-1" aria-label="Link to: Code">#</a></h2>
`
	if got != want {
		t.Errorf("the page as HTML is\n%s\nwant\n%s", got, want)
	}
}

func TestText(t *testing.T) {
	got := manual.Text(manual.Parse(page), 60)
	want := `A page
======

One line with code | <b>, strong link (livetree docs other)
and another: out (https://example.com/), [picture: a
picture].

- first goes on
- second:

      run <it>

      twice

2. two
3. three

In 2026. A sentence.

name  means
---------------
a|b   one | two

Code
----

    indented

    code

Code
----
`
	if got != want {
		t.Errorf("the page as text is\n%s\nwant\n%s", got, want)
	}
}

func TestWideTablesAsText(t *testing.T) {
	got := manual.Text(manual.Parse("| flag | default | meaning |\n|---|---|---|\n| `--cache` | | the size of the cache in the memory of the server |\n"), 40)
	want := "--cache\n    meaning: the size of the cache in\n    the memory of the server\n"
	if got != want {
		t.Errorf("a table that does not fit is\n%s\nwant\n%s", got, want)
	}
}

func TestMan(t *testing.T) {
	got := manual.Man("rules", "Rules", "v1.0.0", manual.Parse("# Rules\n\n`.read` is first.\n\n## Two-fold\n\n    .code \\n\n"))
	want := ".TH \"LIVETREE\\-RULES\" 7 \"\" \"Livetree v1.0.0\" Livetree\n.SH NAME\nlivetree\\-rules \\- Rules\n.PP\n\\fB.read\\fP is first.\n" +
		".SH \"Two\\-fold\"\n.PP\n.RS 4\n.nf\n\\&.code \\en\n.fi\n.RE\n.SH SEE ALSO\n.BR livetree (1)\n"
	if got != want {
		t.Errorf("the man page is\n%s\nwant\n%s", got, want)
	}
}

var (
	href = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	id   = regexp.MustCompile(` id="([^"]*)"`)
)

// TestSite: every link leads to a file of the site and a place in it, so that it needs no server.
func TestSite(t *testing.T) {
	dir := t.TempDir()
	if err := manual.WriteSite(dir, "v1.0.0"); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := docs.Pages()
	if err != nil || len(pages) != len(all)+1 {
		t.Fatalf("the site has %d pages, want the %d of the manual and an index (%v)", len(pages), len(all), err)
	}
	for _, file := range pages {
		for _, problem := range problems(dir, file) {
			t.Errorf("%s: %s", filepath.Base(file), problem)
		}
	}
}

func problems(dir, file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, m := range href.FindAllStringSubmatch(string(text), -1) {
		name, place, _ := strings.Cut(m[1], "#")
		if strings.Contains(name, "://") {
			continue
		}
		target := filepath.Join(dir, name)
		if name == "" {
			target = file
		}
		there, err := os.ReadFile(target)
		if m[1] == "" || err != nil {
			all = append(all, fmt.Sprintf("a link leads to %q: %v", m[1], err))
		} else if place != "" && !strings.Contains(string(there), ` id="`+place+`"`) {
			all = append(all, fmt.Sprintf("a link leads to %q, where that place is not", m[1]))
		}
	}
	seen := map[string]bool{}
	for _, m := range id.FindAllStringSubmatch(string(text), -1) {
		if seen[m[1]] {
			all = append(all, "two things have the id "+m[1])
		}
		seen[m[1]] = true
	}
	for _, want := range []string{`<html lang="en">`, "<h1", "<main", "<title>", `class="skip"`} {
		if strings.Count(string(text), want) != 1 {
			all = append(all, fmt.Sprintf("there is not one %s", want))
		}
	}
	return all
}

// TestSiteLeavesModesAlone: the directory may be one that others use, such as /tmp.
func TestSiteLeavesModesAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := manual.WriteSite(dir, ""); err != nil {
		t.Fatal(err)
	}
	if err := manual.WriteMan(filepath.Join(dir, "made"), ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "images": 0o755, "made": 0o755, "index.html": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("the mode of %s is %o, want %o", name, got, want)
		}
	}
}

// TestPagesStayInTheSubset: what the printers do not know would be shown as it is written.
func TestPagesStayInTheSubset(t *testing.T) {
	foreign := regexp.MustCompile(`^(<[a-z]|> |#{4,} |[*+] |~~~|\[[^\]]+\]: |===|---$)`)
	err := fs.WalkDir(docs.Files(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(docs.Files(), name)
		inCode := false
		for n, line := range strings.Split(string(text), "\n") {
			inCode = inCode != strings.HasPrefix(strings.TrimSpace(line), "```")
			if !inCode && foreign.MatchString(line) {
				t.Errorf("%s:%d has Markdown that the manual does not know: %.60s", name, n+1, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSiteSaysOnceWhatIsWrong: a directory that cannot be made is one error, and not one for each part of the site.
func TestSiteSaysOnceWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := manual.WriteSite(filepath.Join(file, "site"), ""); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("WriteSite below a file = %v, want one error", err)
	}
}
