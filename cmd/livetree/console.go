package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
)

func newConsoleCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "console [flags]",
		Short: "print a link that signs in to the web console",
		Long: `livetree console prints a link to the web console of a server. Who opens it within ten
minutes is signed in as the operator; it works once. The server must serve the console,
which it does unless it was started with --console=false.` + operatorLong,
		Example: "  livetree console --data /var/lib/livetree\n  livetree console --open",
		GroupID: groupCare,
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	open := c.Flags().Bool("open", false, "open the link in the browser of this machine")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var code admin.Code
		if err := o.do(c.Context(), http.MethodPost, "/v1/codes", nil, &code); err != nil {
			return err
		}
		o.print("%s\n", code.URL)
		if !*open {
			return nil
		}
		name, arguments := browser(runtime.GOOS)
		if err := exec.CommandContext(c.Context(), name, append(arguments, code.URL)...).Run(); err != nil { //nolint:gosec // the link is the server's
			return fmt.Errorf("no browser can be started, open the link yourself: %w", err)
		}
		return nil
	}
	return c
}

// browser returns the command that opens a link on a system.
func browser(system string) (name string, arguments []string) {
	switch system {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	return "xdg-open", nil
}
