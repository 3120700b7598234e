package admin

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
)

// A hookDesk answers what operators ask of webhooks.
type hookDesk struct {
	opts *Options
	note func(r *http.Request, what, database, about string)
}

// routes are those of webhooks. They are the operator's: a hook sends data to another machine.
func (d *hookDesk) routes(fail func(http.ResponseWriter, error)) []route {
	const all = "/v1/databases/{name}/hooks"
	const one = all + "/{hook}"
	return []route{
		{pattern: "GET " + all, handle: orFail(fail, d.list)},
		{pattern: "POST " + all, handle: orFail(fail, d.add)},
		{pattern: "GET " + one, handle: orFail(fail, d.show)},
		{pattern: "PATCH " + one, handle: orFail(fail, d.revise)},
		{pattern: "DELETE " + one, handle: orFail(fail, d.remove)},
		{pattern: "POST " + one + "/test", handle: orFail(fail, d.test)},
		{pattern: "POST " + one + "/rotate", handle: orFail(fail, d.rotate)},
		{pattern: "GET " + one + "/deliveries", handle: orFail(fail, d.deliveries)},
		{pattern: "POST " + one + "/deliveries/{id}/replay", handle: orFail(fail, d.replay)},
	}
}

// A Hook is what the operator is shown of a webhook. A secret is there only in the answer to the
// request that drew it.
type Hook struct {
	Name    string    `json:"name"`
	Path    string    `json:"path"`
	URL     string    `json:"url"`
	Events  []string  `json:"events"`
	Created time.Time `json:"created"`
	// Paused says why nothing is sent; empty if it is.
	Paused string `json:"paused,omitempty"`
	// Secrets is how many there are: two while one is replaced, none after a restore from an archive without them.
	Secrets int           `json:"secrets"`
	Secret  string        `json:"secret,omitempty"`
	Stat    *deliver.Stat `json:"stat,omitempty"`
}

func (d *hookDesk) describe(database string, h *hook.Hook) Hook {
	stat := d.opts.Hooks.Stat(database, h)
	return Hook{
		Name: h.Name, Path: h.Pattern.String(), URL: h.URL, Events: h.Events.Names(), Created: time.UnixMilli(h.Created).UTC(),
		Paused: h.Paused, Secrets: len(h.Secrets), Stat: &stat,
	}
}

// find returns the database and the hook that a request names.
func (d *hookDesk) find(r *http.Request) (*engine.Database, *hook.Hook, error) {
	database, err := d.database(r)
	if err != nil {
		return nil, nil, err
	}
	h, err := engine.Hooks(database).Named(r.PathValue("hook"))
	return database, h, err
}

func (d *hookDesk) database(r *http.Request) (*engine.Database, error) {
	if d.opts.Hooks == nil {
		return nil, fault.New(fault.Unavailable, "this server cannot do that")
	}
	return d.opts.Catalog.Database(r.PathValue("name"))
}

func (d *hookDesk) list(w http.ResponseWriter, r *http.Request) error {
	database, err := d.database(r)
	if err != nil {
		return err
	}
	list := []Hook{}
	for _, h := range engine.Hooks(database).Hooks() {
		list = append(list, d.describe(database.Name(), h))
	}
	answer(w, http.StatusOK, map[string]any{"hooks": list})
	return nil
}

func (d *hookDesk) show(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, d.describe(database.Name(), h))
	return nil
}

// A NewHook asks for a webhook.
type NewHook struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"`
	URL    string   `json:"url"`
	Events []string `json:"events,omitempty"`
	Secret string   `json:"secret,omitempty"` // one is drawn if it is empty
}

func (d *hookDesk) add(w http.ResponseWriter, r *http.Request) error {
	database, err := d.database(r)
	if err != nil {
		return err
	}
	var request NewHook
	if err := body(r, &request); err != nil {
		return err
	}
	new := hook.Hook{Name: request.Name, URL: request.URL}
	if new.Pattern, err = hook.ParsePattern(request.Path); err != nil {
		return err
	}
	if new.Events, err = hook.ParseEvents(request.Events); err != nil {
		return err
	}
	if err := d.opts.Hooks.CheckURL(request.URL); err != nil {
		return err
	}
	drawn, err := secretOf(&new, request.Secret)
	if err != nil {
		return err
	}
	added, err := engine.AddHook(r.Context(), database, new)
	if err != nil {
		return err
	}
	d.note(r, "added a hook", database.Name(), added.Name)
	shown := d.describe(database.Name(), added)
	shown.Secret = drawn
	answer(w, http.StatusCreated, shown)
	return nil
}

// secretOf puts a secret before those that a hook has, and returns it if it was drawn. Of the others the newest stays.
func secretOf(h *hook.Hook, given string) (drawn string, err error) {
	if given == "" {
		if drawn, err = hook.DrawSecret(rand.Reader); err != nil {
			return "", err
		}
		given = drawn
	}
	secrets := append([]string{given}, h.Secrets...)
	h.Secrets = secrets[:min(len(secrets), hook.MaxSecrets)]
	return drawn, hook.CheckSecret(given)
}

// A HookRevision changes a webhook.
type HookRevision struct {
	Paused *bool   `json:"paused,omitempty"`
	URL    *string `json:"url,omitempty"`
}

func (d *hookDesk) revise(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err != nil {
		return err
	}
	var request HookRevision
	if err := body(r, &request); err != nil {
		return err
	}
	if request.Paused == nil && request.URL == nil {
		return fault.New(fault.Invalid, "there is nothing to change: it may be paused or url")
	}
	if request.URL != nil {
		if err := d.opts.Hooks.CheckURL(*request.URL); err != nil {
			return err
		}
	}
	revised, err := engine.ReviseHook(r.Context(), database, h.Name, func(h *hook.Hook) error {
		if request.URL != nil {
			h.URL = *request.URL
		}
		switch {
		case request.Paused == nil:
		case *request.Paused:
			h.Paused = hook.ByOperator
		default:
			h.Paused = ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	what := "changed a hook"
	if request.Paused != nil {
		what = map[bool]string{true: "paused a hook", false: "resumed a hook"}[*request.Paused]
	}
	d.note(r, what, database.Name(), h.Name)
	answer(w, http.StatusOK, d.describe(database.Name(), revised))
	return nil
}

func (d *hookDesk) remove(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err == nil {
		_, err = engine.RemoveHook(r.Context(), database, h.Name)
	}
	if err != nil {
		return err
	}
	d.note(r, "removed a hook", database.Name(), h.Name)
	answer(w, http.StatusOK, map[string]string{"removed": h.Name})
	return nil
}

func (d *hookDesk) test(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err != nil {
		return err
	}
	record, err := d.opts.Hooks.Test(r.Context(), database, h)
	if err != nil {
		return err
	}
	d.note(r, "tested a hook", database.Name(), h.Name)
	answer(w, http.StatusOK, record)
	return nil
}

// rotate gives a hook a new secret, and keeps the one before it until the next; or drops that one.
func (d *hookDesk) rotate(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err != nil {
		return err
	}
	var request struct {
		Secret  string `json:"secret"`
		DropOld bool   `json:"drop_old"`
	}
	if err := body(r, &request); err != nil {
		return err
	}
	drawn := ""
	revised, err := engine.ReviseHook(r.Context(), database, h.Name, func(h *hook.Hook) (err error) {
		if request.DropOld {
			h.Secrets = h.Secrets[:min(len(h.Secrets), 1)]
			return nil
		}
		drawn, err = secretOf(h, request.Secret)
		return err
	})
	if err != nil {
		return err
	}
	what := "replaced the secret of a hook"
	if request.DropOld {
		what = "dropped the old secret of a hook"
	}
	d.note(r, what, database.Name(), h.Name)
	shown := d.describe(database.Name(), revised)
	shown.Secret = drawn
	answer(w, http.StatusOK, shown)
	return nil
}

func (d *hookDesk) deliveries(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err != nil {
		return err
	}
	list := d.opts.Hooks.Recent(database.Name(), h)
	if list == nil {
		list = []deliver.Record{}
	}
	answer(w, http.StatusOK, map[string]any{"deliveries": list})
	return nil
}

func (d *hookDesk) replay(w http.ResponseWriter, r *http.Request) error {
	database, h, err := d.find(r)
	if err == nil {
		err = d.opts.Hooks.Replay(database, h, r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	d.note(r, "repeated a delivery of a hook", database.Name(), h.Name+" "+r.PathValue("id"))
	answer(w, http.StatusAccepted, map[string]string{"replayed": r.PathValue("id")})
	return nil
}
