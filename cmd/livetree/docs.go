package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/cli"
)

func newDocsCommand(a *app) *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "docs [TOPIC | search WORD] [flags]",
		Short: "show the manual",
		Long: `livetree docs shows the manual, which is inside this program and is the one for its
version. Without a topic it lists the topics; search lists the lines that hold a word.

On a terminal a page is shown by the program that PAGER names, or else by less if there
is one. PAGER=cat shows it as it is.`,
		Example: "  livetree docs\n  livetree docs rules\n  livetree docs search indexOn",
		Args:    takes("[TOPIC | search]", "[WORD]"),
	}
	c.Flags().BoolVar(&list, "list", false, "print the names of the topics only, one on a line")
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
	c.RunE = func(_ *cobra.Command, args []string) error {
		pages, err := docs.Pages()
		if err != nil {
			return err
		}
		return showDocs(a, pages, args, list)
	}
	return c
}

// showDocs shows what the arguments of the command ask for.
func showDocs(a *app, pages []docs.Page, args []string, list bool) error {
	switch {
	case len(args) == 2 && args[0] == "search":
		return searchDocs(a, pages, args[1])
	case len(args) == 2 || list && len(args) > 0:
		return fmt.Errorf("docs takes a topic, or search and a word, or --list, but was given %q; see livetree docs --help", args)
	case len(args) == 0:
		listDocs(a, pages, list)
		return nil
	case args[0] == "search":
		return fmt.Errorf("docs search needs a word; see livetree docs --help")
	}
	var topics []string
	for _, p := range pages {
		if p.Topic == args[0] {
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

func listDocs(a *app, pages []docs.Page, onlyNames bool) {
	for _, p := range pages {
		if onlyNames {
			say(a.stdout, p.Topic+"\n")
			continue
		}
		say(a.stdout, fmt.Sprintf("%-18s %s\n", p.Topic, p.Title))
	}
}

func searchDocs(a *app, pages []docs.Page, word string) error {
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
func (a *app) page(text string) error {
	pager := a.pager()
	if pager == nil {
		_, err := io.WriteString(a.stdout, text)
		return err
	}
	pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), cli.Unguarded(a.stdout), cli.Unguarded(a.stderr)
	if err := pager.Run(); err != nil {
		return fmt.Errorf("show it with %s: %w; PAGER names another program", pager.Args[0], err)
	}
	return nil
}

// pager returns the program that shows texts, nil if there is to be none.
func (a *app) pager() *exec.Cmd {
	if !a.isTerminal(a.stdout) {
		return nil
	}
	if words, ok := a.lookup("PAGER"); ok {
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
