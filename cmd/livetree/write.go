package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/client"
)

// A writing is a command that changes data.
type writing struct {
	use, alias, short, long, example string
	method                           string
	done                             string // said of the path
	hasBody                          bool
}

const bodyLong = `

The data is JSON: an argument, a file (--file), or else the standard input.`

func newSetCommand(a *app) *cobra.Command {
	return newWriteCommand(a, writing{
		use:   "set PATH [JSON] [flags]",
		alias: "put",
		short: "replace what is at a path",
		long:  "livetree set replaces what is at a path, with all that is below it. null deletes it." + bodyLong,
		example: `  livetree set /rooms/blue/topic '"whales"'
  livetree set /rooms/blue --file blue.json
  date +%s | livetree set /seen`,
		method: http.MethodPut, done: "set", hasBody: true,
	})
}

func newUpdateCommand(a *app) *cobra.Command {
	return newWriteCommand(a, writing{
		use:   "update PATH [JSON] [flags]",
		alias: "patch",
		short: "replace some children at a path",
		long: `livetree update replaces the children that an object names and leaves the others.
Its keys may be paths, such as "a/b": all of them change together or not at all.` + bodyLong,
		example: `  livetree update /rooms/blue '{"topic": "whales", "seen": {".sv": "timestamp"}}'
  livetree update / '{"users/ann/room": "blue", "rooms/blue/users/ann": true}'`,
		method: http.MethodPatch, done: "updated", hasBody: true,
	})
}

func newPushCommand(a *app) *cobra.Command {
	return newWriteCommand(a, writing{
		use:   "push PATH [JSON] [flags]",
		alias: "post",
		short: "add a child with a generated key, and print the key",
		long: `livetree push adds a child with a key that the server generates, and prints that
key. Later keys sort after earlier ones.` + bodyLong,
		example: `  livetree push /rooms/blue/messages '{"text": "hello"}'
  livetree push /log --file entry.json`,
		method: http.MethodPost, hasBody: true,
	})
}

func newRemoveCommand(a *app) *cobra.Command {
	return newWriteCommand(a, writing{
		use:   "remove PATH [flags]",
		alias: "delete",
		short: "delete what is at a path",
		long: `livetree remove deletes what is at a path, with all that is below it. On a terminal
it asks first.`,
		example: `  livetree remove /rooms/blue
  livetree remove / --yes`,
		method: http.MethodDelete, done: "removed",
	})
}

func newWriteCommand(a *app, w writing) *cobra.Command {
	c := &cobra.Command{
		Use: w.use, Aliases: []string{w.alias}, Short: w.short, Long: w.long + remoteLong, Example: w.example,
		GroupID: groupData, Args: takes("PATH"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	var file string
	yes := true
	if w.hasBody {
		c.Args = takes("PATH", "[JSON]")
		c.Flags().StringVar(&file, "file", "", "the `file` with the data; - for the standard input")
	} else {
		c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	}
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		at, server, err := r.connectTo(args[0])
		if err != nil {
			return err
		}
		defer server.Close()
		req := client.Request{Method: w.method, Path: at}
		if w.hasBody {
			body, err := openBody(a, args[1:], file)
			if err != nil {
				return err
			}
			defer body.close()
			req.Body, req.Size = body.Reader, body.size
		} else if err := a.confirm(yes, fmt.Sprintf("Delete %s of %s with all that is below it?", tidy(args[0]), server)); err != nil {
			return err
		}
		return w.send(c, a, r, server, req, tidy(args[0]))
	})
	return c
}

// tidy returns a path as it is shown.
func tidy(path string) string { return "/" + strings.Trim(path, "/") }

// send sends the request and says what came of it.
func (w writing) send(c *cobra.Command, a *app, r *remote, server *client.Client, req client.Request, path string) error {
	if r.json {
		out := &lineWriter{Writer: a.stdout}
		_, err := server.Copy(c.Context(), out, req)
		if out.last != 0 {
			out.end()
		}
		return err
	}
	if w.method != http.MethodPost {
		req.Query = url.Values{"print": {"silent"}} // the data need not come back
	}
	answer, err := server.Bytes(c.Context(), req)
	if err != nil {
		return err
	}
	say(a.stderr, "on "+server.String()+"\n")
	if w.method != http.MethodPost {
		say(a.stdout, w.done+" "+path+"\n")
		return nil
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(answer, &named); err != nil || named.Name == "" {
		return fmt.Errorf("the child was added, but the server did not say its key: %.100q", answer)
	}
	say(a.stdout, named.Name+"\n")
	return nil
}
