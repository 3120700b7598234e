package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/login"
)

// complete tells shells what comes after a command and all commands below it, as far as those do not say it themselves. A path is that of a
// location and a name that of a database: without this, shells complete both as files.
func complete(c *cobra.Command) {
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !takesFile(c.Use) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	// These fail for a flag that is not there, or that is completed already.
	_ = c.MarkFlagDirname("data")
	_ = c.MarkFlagFilename("ca", "pem", "crt")
	_ = c.RegisterFlagCompletionFunc("server", completeServer)
	for _, below := range c.Commands() {
		complete(below)
	}
}

// takesFile reports whether a command takes a file or a directory, by the names of its arguments.
func takesFile(use string) bool {
	for _, name := range []string{"FILE", "CASES", "DIR", "DATA", "TARGET", "BACKUP"} {
		if strings.Contains(use, " "+name) {
			return true
		}
	}
	return false
}

// completeServer lists the servers that the user has logged in to.
func completeServer(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	book, err := login.Read(login.File())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return book.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeFirst completes the first argument of a command with one of some words.
func completeFirst(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCommand completes the arguments of help: a command, and one below it.
func completeCommand(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	topic, names := commandNamed(c.Root(), args), []string(nil)
	if topic != nil {
		for _, below := range topic.Commands() {
			if below.IsAvailableCommand() {
				names = append(names, below.Name()+"\t"+below.Short)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// commandNamed returns the command with these names from c on, nil if there is none.
func commandNamed(c *cobra.Command, names []string) *cobra.Command {
	for _, name := range names {
		var next *cobra.Command
		for _, below := range c.Commands() {
			if below.Name() == name || below.HasAlias(name) {
				next = below
			}
		}
		if next == nil {
			return nil
		}
		c = next
	}
	return c
}
