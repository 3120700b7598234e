package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/local"
)

// operatorLong is what the commands that use the admin listener have in common.
const operatorLong = `

It asks the admin listener of the server that runs on --data, and so needs to be run
on its machine, by a user who can read its files. For another machine there is
--admin-url, with the listener's credential in LIVETREE_ADMIN_TOKEN.`

// An operator is somebody who looks after a server.
type operator struct {
	client.Operator
	app  *app
	json bool
}

// operatorFlags declares the flags by which the admin listener is found.
func operatorFlags(a *app, flags *pflag.FlagSet) *operator {
	o := &operator{app: a, Operator: client.Operator{Lookup: a.lookup}}
	dataFlag(flags, &o.Data)
	flags.StringVar(&o.URL, "admin-url", "", "the `URL` of the admin listener, if it is not that of --data")
	flags.StringVar(&o.CA, "ca", "", "a PEM `file` with a certificate to trust; default tls/ca.pem of --data if there is one")
	flags.BoolVar(&o.json, "json", false, "print JSON, errors too")
	return o
}

// dataFlag declares the flag for the data directory of a server.
func dataFlag(flags *pflag.FlagSet, data *string) {
	flags.StringVar(data, "data", local.DefaultData, "the data `directory` of the server")
}

// do makes a request and reads the answer into a value, which may be nil. With
// --json the answer is printed as it is, too.
func (o *operator) do(ctx context.Context, method, path string, request, into any) error {
	text, err := o.Ask(ctx, method, path, request)
	if err != nil {
		return err
	}
	if o.json {
		say(o.app.stdout, string(text))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer of the admin listener makes no sense: %w", err)
	}
	return nil
}

// print prints text, unless the answer was printed as JSON.
func (o *operator) print(format string, args ...any) {
	if !o.json {
		fmt.Fprintf(o.app.stdout, format, args...)
	}
}
