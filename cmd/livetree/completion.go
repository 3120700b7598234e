package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/livetree/livetree/internal/manual"
)

// shells are those that cobra can write a completion script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print a script that lets a shell complete commands and flags",
		Long: `livetree completion prints a script that lets a shell complete the commands and flags
of livetree. That for bash needs the package bash-completion.`,
		Example: `  source <(livetree completion bash)
  livetree completion bash > /etc/bash_completion.d/livetree
  livetree completion zsh > "${fpath[1]}/_livetree"
  livetree completion fish > ~/.config/fish/completions/livetree.fish
  livetree completion powershell | Out-String | Invoke-Expression`,
		Args:      takes("bash|zsh|fish|powershell"),
		ValidArgs: shells,
		RunE: func(c *cobra.Command, args []string) error {
			return writeCompletion(c.Root(), args[0], a.stdout)
		},
	}
}

func writeCompletion(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return fmt.Errorf("completion knows %s, but not %q", strings.Join(shells, ", "), shell)
}

// newManCommand is for packagers, and hidden.
func newManCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "write manual pages",
		Long:    "livetree man writes a manual page for each command into a directory, which it makes.",
		Example: "  livetree man share/man/man1",
		Args:    takes("DIR"),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := manual.MakeDirectory(args[0]); err != nil {
				return err
			}
			return writeManual(c.Root(), args[0])
		},
	}
}

// writeManual writes the pages into a directory. With SOURCE_DATE_EPOCH they are the
// same to the byte on another day, too.
func writeManual(c *cobra.Command, dir string) error {
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() {
			continue
		}
		if err := writeManual(below, dir); err != nil {
			return err
		}
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "Livetree " + buildVersion(), Manual: "Livetree"}
	c.DisableAutoGenTag = true
	var page bytes.Buffer
	if err := doc.GenMan(c, header, &page); err != nil {
		return err
	}
	// A flag that takes no value is shown as --dev[=false], which nobody writes.
	text := bytes.ReplaceAll(page.Bytes(), []byte("[=false]"), nil)
	file := filepath.Join(dir, name+".1")
	// Unlike all else that commands make, these are for everybody.
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	return os.Chmod(file, 0o644)
}
