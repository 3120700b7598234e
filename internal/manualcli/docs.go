// Package manualcli is the command livetree docs, which shows the manual.
package manualcli

import (
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/manual"
)

// Surroundings are what the command has from the program that it is part of.
type Surroundings struct {
	// Takes bounds the arguments of a command by their names.
	Takes func(names ...string) cobra.PositionalArgs
	// Out and Err are where it prints.
	Out, Err func() io.Writer
	// Lookup finds an environment variable.
	Lookup func(name string) (string, bool)
	// IsTerminal reports whether a person sits at a stream.
	IsTerminal func(stream any) bool
	// Version is that of the program.
	Version string
}

// Command returns the command livetree docs.
func (a Surroundings) Command() *cobra.Command {
	var list bool
	var site, man, addr string
	c := &cobra.Command{
		Use:   "docs [TOPIC | search TEXT] [flags]",
		Short: "show the manual",
		Long: `livetree docs shows the manual, which is inside this program and is the one for its
version. Without a topic it lists the topics in the order in which they are read; search
lists the lines that hold a text.

On a terminal a page is shown as text, by the program that PAGER names, or else by less
if there is one. Elsewhere it is printed as Markdown. --serve shows all pages to a browser
on this machine, --html writes them as a web site, which needs no server, and --man as
man pages of section 7.`,
		Example: "  livetree docs\n  livetree docs rules\n  livetree docs search indexOn\n  livetree docs search the port is in use\n  livetree docs --serve 127.0.0.1:8080\n  livetree docs --html ./manual",
		Args:    a.Takes("[TOPIC | search]", "[TEXT...]"),
	}
	c.Flags().BoolVar(&list, "list", false, "print the names of the topics only, one on a line")
	c.Flags().StringVar(&addr, "serve", "", "serve the manual as a web site at this `address` of this machine, until it is interrupted")
	c.Flags().StringVar(&site, "html", "", "write the manual as a web site into this `directory`")
	c.Flags().StringVar(&man, "man", "", "write the manual as man pages into this `directory`")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		pages, err := docs.Pages()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := []string{"search"}
		for _, p := range pages {
			names = append(names, p.Topic+"\t"+p.Title)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if site != "" || man != "" || addr != "" {
			if len(args) > 0 || list {
				return fmt.Errorf("--serve, --html and --man are for all pages: name no topic; see livetree docs --help")
			}
			if err := a.write(site, man); err != nil || addr == "" {
				return err
			}
			return a.serve(c.Context(), addr)
		}
		pages, err := docs.Pages()
		if err != nil {
			return err
		}
		return a.show(pages, args, list)
	}
	return c
}

// write writes the manual into directories, "" for none.
func (a Surroundings) write(site, man string) error {
	if site != "" {
		if err := manual.WriteSite(site, a.Version); err != nil {
			return fmt.Errorf("write the manual as a web site: %w", err)
		}
	}
	if man != "" {
		if err := manual.WriteMan(man, a.Version); err != nil {
			return fmt.Errorf("write the manual as man pages: %w", err)
		}
	}
	return nil
}

// textWidth is the width of a page as text where the terminal is wider: long lines are hard to read.
const textWidth = 88

// width returns the width of a page as text.
func (a Surroundings) width() int {
	if width := cli.Width(a.Out()); width > 0 {
		return min(width, textWidth)
	}
	return textWidth
}

// show shows what the arguments of the command ask for.
func (a Surroundings) show(pages []docs.Page, args []string, list bool) error {
	switch {
	case len(args) >= 2 && args[0] == "search" && !list:
		return a.search(pages, strings.Join(args[1:], " ")) // an error is pasted without quotes
	case len(args) >= 2 || list && len(args) > 0:
		return fmt.Errorf("docs takes a topic, or search and a text, or --list, but was given %q; see livetree docs --help", args)
	case len(args) == 0:
		a.list(pages, list)
		return nil
	case args[0] == "search":
		return fmt.Errorf("docs search needs a text; see livetree docs --help")
	}
	var topics []string
	for _, p := range pages {
		if p.Topic == args[0] {
			if a.IsTerminal(a.Out()) {
				return a.page(manual.Text(manual.Parse(p.Text), a.width()))
			}
			return a.page(p.Text)
		}
		topics = append(topics, p.Topic)
	}
	hint := ""
	if similar := cli.Similar(topics, args[0]); similar != "" {
		hint = fmt.Sprintf(": did you mean %q?", similar)
	}
	return fmt.Errorf("the manual has no topic %q%s; livetree docs lists the topics", args[0], hint)
}

func (a Surroundings) list(pages []docs.Page, onlyNames bool) {
	part := ""
	for _, p := range pages {
		if onlyNames {
			cli.Say(a.Out(), p.Topic+"\n")
			continue
		}
		if p.Part != part {
			part = p.Part
			cli.Say(a.Out(), part+"\n")
		}
		cli.Say(a.Out(), fmt.Sprintf("  %-18s %s\n", p.Topic, p.Title))
	}
}

func (a Surroundings) search(pages []docs.Page, word string) error {
	found := docs.Search(pages, word)
	if len(found) == 0 {
		return fmt.Errorf("the manual does not say %q", word)
	}
	var text strings.Builder
	for _, line := range found {
		fmt.Fprintf(&text, "%s:%d: %s\n", line.Topic, line.Number, strings.TrimSpace(line.Text))
	}
	return a.page(text.String())
}

// page shows a text: by the screen to a person, in one piece to a program.
func (a Surroundings) page(text string) error {
	pager := a.pager()
	if pager == nil {
		_, err := io.WriteString(a.Out(), text)
		return err
	}
	pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), cli.Unguarded(a.Out()), cli.Unguarded(a.Err())
	if err := pager.Run(); err != nil {
		return fmt.Errorf("show it with %s: %w; PAGER names another program", pager.Args[0], err)
	}
	return nil
}

// pager returns the program that shows texts, nil if there is to be none.
func (a Surroundings) pager() *exec.Cmd {
	if !a.IsTerminal(a.Out()) {
		return nil
	}
	if words, ok := a.Lookup("PAGER"); ok {
		if name := strings.Fields(words); len(name) > 0 {
			return exec.Command(name[0], name[1:]...)
		}
		return nil
	}
	less, err := exec.LookPath("less")
	if err != nil {
		return nil
	}
	return exec.Command(less, "-F", "-R", "-X") // as git does: it ends by itself when all fits
}
