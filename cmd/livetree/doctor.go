package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/owneronly"
)

func newDoctorCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [--url URL] [--data DIRECTORY] [flags]",
		Short: "look for what is wrong with a server, and say what to do",
		Long: `livetree doctor looks at a server from the outside: its address, certificate, clock,
database and rules. Where there is a data directory it also looks from the inside: at
the server's own checks, its disk, whether others can read its files, and the limits
of this machine. For each problem it says what to do. Exit code 1 if it finds one.` + remoteLong,
		Example: `  livetree doctor
  livetree doctor --url https://db.example.com --db shop`,
		GroupID: groupCare,
		Args:    takes(),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	c.RunE = r.runs(a, func(c *cobra.Command, _ []string) error {
		r.Attempts = 1
		checks, err := diagnose(c.Context(), r)
		if err != nil {
			return err
		}
		checks = append(checks, checkServer(c.Context(), a, r.Data)...)
		checks = append(checks, checkMachine(r.Data)...)
		return showChecks(a, r.json, expectDev(checks))
	})
	return c
}

// diagnose looks at the server from the outside. Where none runs on ./livetree-data it looks at the usual address; where
// none runs on a directory that was named, that is what it has found.
func diagnose(ctx context.Context, r *remote) ([]client.Check, error) {
	if err := r.choose(); err != nil {
		return nil, err
	}
	found, err := r.FindLogin()
	if err != nil {
		return nil, err
	}
	if _, err := local.Find(r.Data); !found && r.URL == "" && errors.Is(err, local.ErrNone) {
		if cli.IsTyped(r.flags, "data") {
			return []client.Check{{Name: "address", Result: client.CheckFailed, Text: "no server runs on " + r.Data, Do: "start it: livetree serve --data " + cli.QuoteShell(r.Data)}}, nil
		}
		r.URL = "https://localhost:9000"
	}
	server, err := r.connect()
	if err != nil {
		return nil, err
	}
	defer server.Close()
	return server.Diagnose(ctx), nil
}

// expectDev makes open rules of a server with --dev a warning: its databases are made with them.
func expectDev(checks []client.Check) []client.Check {
	if !slices.ContainsFunc(checks, func(c client.Check) bool { return c.Name == "server" && c.Text == ownCheck("dev", "on") }) {
		return checks
	}
	for i := range checks {
		if checks[i].Name == "rules" && checks[i].Result == client.CheckFailed {
			checks[i].Result, checks[i].Do = client.CheckWarning, "with --dev that is so at first: close the root before others use the data, livetree rules set"
		}
	}
	return checks
}

// ownCheck says what a server has found by a check of its own.
func ownCheck(name, state string) string {
	return fmt.Sprintf("its own check %s says %s", name, state)
}

// showChecks prints the checks; one that failed is an error.
func showChecks(a *app, asJSON bool, checks []client.Check) error {
	failed := false
	for _, check := range checks {
		failed = failed || check.Result == client.CheckFailed
		if asJSON {
			printJSON(a.stdout, check)
			continue
		}
		say(a.stdout, fmt.Sprintf("%-8s %-12s %s\n", check.Result, check.Name, check.Text))
		if check.Do != "" {
			say(a.stdout, fmt.Sprintf("%21s do: %s\n", "", check.Do))
		}
	}
	if failed {
		return errSaid
	}
	return nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// checkServer asks the server of a data directory how it is, where it says so: on
// its admin listener, which needs no credential for that.
func checkServer(ctx context.Context, a *app, data string) []client.Check {
	if !isFile(filepath.Join(data, admin.Dir, admin.AddrFile)) {
		return nil // it is stopped, or has no such listener
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r, err := (&client.Operator{Data: data, Lookup: a.lookup}).Readiness(ctx)
	if err != nil {
		return []client.Check{{Name: "server", Result: client.CheckWarning, Text: err.Error(), Do: "start the server that uses " + data}}
	}
	var checks []client.Check
	for _, check := range r.Checks {
		if check.Result == "pass" {
			continue
		}
		result := client.CheckFailed
		if check.Result == "warn" {
			result = client.CheckWarning
		}
		advice := "livetree docs metrics says what this check means"
		switch check.Name {
		case "dev":
			advice = "start it without --dev when others are to use it"
		case "secrets":
			advice = "replace the secret that is too short: livetree secret add, then livetree secret remove"
		}
		checks = append(checks, client.Check{Name: "server", Result: result, Text: ownCheck(check.Name, check.State), Do: advice})
	}
	if len(checks) == 0 {
		checks = append(checks, client.Check{Name: "server", Result: client.CheckOK, Text: "all of its own checks pass"})
	}
	return checks
}

const (
	// littleRoom is what a disk should have left, in bytes and in parts of it.
	littleRoom, littleShare = 1 << 30, 0.1
	// fewFiles is a limit of open files that a server with many connections and
	// tables can reach.
	fewFiles = 4096
)

// checkMachine looks at the data directory and at the limits of the machine.
func checkMachine(dir string) []client.Check {
	var checks []client.Check
	if _, err := os.Stat(filepath.Join(dir, "LIVETREE")); errors.Is(err, fs.ErrNotExist) {
		return []client.Check{{Name: "data", Result: client.CheckSkipped, Text: "there is no data directory at " + dir, Do: "name it with --data if the server runs on this machine"}}
	} else if err != nil {
		return []client.Check{{Name: "data", Result: client.CheckFailed, Text: err.Error(), Do: "run this as the user that runs the server"}}
	}
	if free, total, err := diskRoom(dir); err == nil {
		checks = append(checks, checkDisk(free, total))
	}
	checks = append(checks, checkPrivacy(dir))
	if limit, ok := openFiles(); ok {
		check := client.Check{Name: "limits", Result: client.CheckOK, Text: fmt.Sprintf("a process may have %d files open", limit)}
		if limit < fewFiles {
			check.Result, check.Do = client.CheckWarning, "raise it for the server: ulimit -n 65536, or LimitNOFILE= of its unit"
		}
		checks = append(checks, check)
	}
	return checks
}

func checkDisk(free, total uint64) client.Check {
	check := client.Check{Name: "disk", Result: client.CheckOK, Text: fmt.Sprintf("%s of %s are free", cli.Size(free), cli.Size(total))}
	if free < littleRoom {
		check.Result = client.CheckFailed
	} else if float64(free) < float64(total)*littleShare {
		check.Result = client.CheckWarning
	}
	if check.Result != client.CheckOK {
		check.Do = "make room or move the data directory to a larger disk: a server whose disk is full takes no writes"
	}
	return check
}

// checkPrivacy finds out whether others on this machine can read the data directory,
// which has secrets in every file.
func checkPrivacy(dir string) client.Check {
	loose, err := owneronly.Loose(dir)
	switch {
	case err != nil:
		return client.Check{Name: "privacy", Result: client.CheckWarning, Text: err.Error(), Do: "run this as the user that runs the server"}
	case len(loose) > 0:
		return client.Check{Name: "privacy", Result: client.CheckFailed, Text: fmt.Sprintf("others may read %s, one of %d", filepath.Join(dir, loose[0]), len(loose)),
			Do: "chmod -R go-rwx " + dir + ", or start the server again, which does it; then replace the secrets if others use this machine"}
	}
	return client.Check{Name: "privacy", Result: client.CheckOK, Text: dir + " is for its owner alone"}
}
