package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/pause"
)

// The claim is renewed every RenewEvery, and may be taken over when it has stood still
// for the Patience of the Options.
const (
	RenewEvery      = 15 * time.Second
	defaultPatience = 60 * time.Second
	// lookEvery is how often one who waits looks at the claim.
	lookEvery = 5 * time.Second
	// settle is how long a claim that was taken over must stand: two servers that
	// take it over at the same time both see who came last.
	settle = 2 * time.Second

	maxClaim = 4 << 10
)

// A Claim says who writes into an archive. Clocks of different machines are never
// compared: who wants to take a claim over watches whether it changes.
type Claim struct {
	Epoch string `json:"epoch"`
	// Tenure is drawn at each start. In a cluster it begins with the tenure of the node that writes: see Options.Tenure.
	Tenure   string    `json:"tenure"`
	Renewed  time.Time `json:"renewed"`
	Count    uint64    `json:"count"`    // of renewals
	Released bool      `json:"released"` // its holder has stopped in order
	// SHA256 is the hash of this claim as text, with nothing in this field.
	SHA256 string `json:"sha256"`
}

func sealClaim(c *Claim) ([]byte, error) {
	c.SHA256 = ""
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	c.SHA256 = Hash(sha256.Sum256(text)).String()
	return json.Marshal(c)
}

// readClaim returns the claim of an archive, or nil if there is none.
func readClaim(ctx context.Context, p place.Place) (*Claim, error) {
	text, err := place.Read(ctx, p, claimName, maxClaim)
	if errors.Is(err, place.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := decodeClaim(text)
	if err != nil {
		return nil, &Damage{Object: claimName, Err: err}
	}
	return c, nil
}

func decodeClaim(text []byte) (*Claim, error) {
	var c Claim
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	sealed := c
	if again, err := sealClaim(&sealed); err != nil || !bytes.Equal(again, text) {
		return nil, errors.Join(err, errors.New("its text does not have the hash that it says"))
	}
	return &c, nil
}

// A tenancy is a claim that this process holds, or had.
type tenancy struct {
	place  place.Place
	now    func() time.Time
	number uint64 // of the tenure in a cluster; 0 outside of one
	// another says that this server did not have the claim before: it was another's, or there was none.
	another bool

	mu    sync.Mutex // held while the claim is read and put
	claim Claim
	seen  time.Time // when it was this one's for the last time that is known
	taken error     // once another has taken it
}

// takeClaim takes the claim of an archive for an epoch. It waits while a server of another
// epoch renews it. One of the same epoch is taken over at once: it is this server
// before its restart. A copy of its data directory that runs elsewhere is found out
// when either renews, or sends a segment.
func takeClaim(ctx context.Context, p place.Place, o Options) (*tenancy, error) {
	var tenure [16]byte
	if _, err := io.ReadFull(o.Rand, tenure[:]); err != nil {
		return nil, fmt.Errorf("draw a tenure: %w", err)
	}
	t := &tenancy{place: p, now: o.Now, number: o.Tenure, claim: Claim{Epoch: epochText(o.Epoch), Tenure: tenureText(o.Tenure, tenure)}}
	for {
		there, err := t.await(ctx, o)
		if err != nil {
			return nil, err
		}
		err = t.put(ctx, there == nil)
		if errors.Is(err, place.ErrExists) {
			continue // another server was faster
		}
		if err != nil {
			return nil, err
		}
		t.another = there == nil || there.Epoch != t.claim.Epoch
		if there == nil || !t.another {
			return t, nil
		}
		if err := pause.For(ctx, settle); err != nil {
			return nil, err
		}
		if now, err := readClaim(ctx, p); err != nil {
			return nil, err
		} else if now != nil && now.Tenure == t.claim.Tenure {
			return t, nil
		}
	}
}

// await waits until the claim may be taken, and returns the one that is there.
func (t *tenancy) await(ctx context.Context, o Options) (*Claim, error) {
	var watched *Claim
	var stood time.Duration
	for {
		there, err := readClaim(ctx, t.place)
		if _, damaged := errors.AsType[*Damage](err); damaged {
			there, err = &Claim{}, nil // its holder mends it when it renews, if there is one
		}
		if err != nil {
			return nil, err
		}
		if there != nil && t.isReplacedBy(there) {
			return nil, takenBy(there)
		}
		if there == nil || there.Released || there.Epoch == t.claim.Epoch {
			return there, nil
		}
		if watched == nil || watched.SHA256 != there.SHA256 {
			watched, stood = there, 0
			o.Waiting(*there)
		}
		if stood >= o.Patience {
			return there, nil
		}
		wait := min(lookEvery, o.Patience-stood)
		if err := pause.For(ctx, wait); err != nil {
			return nil, fmt.Errorf("wait for the claim of server %s: %w", there.Epoch, err)
		}
		stood += wait
	}
}

// renew says that this process still writes. It fails with ErrTaken once another has
// taken the claim.
func (t *tenancy) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewLocked(ctx)
}

// check fails with ErrTaken if another has taken the claim. It looks at it only if it was not seen for so long that
// this may be: this process could not reach the archive, or stood still.
func (t *tenancy) check(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().Round(0)
	if t.taken != nil || now.Sub(t.seen) < 2*RenewEvery {
		return t.taken
	}
	if err := t.look(ctx); err != nil {
		return err
	}
	t.seen = now
	return nil
}

// look reads the claim, and fails if it is another's. One that is damaged can be put right.
func (t *tenancy) look(ctx context.Context) error {
	there, err := readClaim(ctx, t.place)
	if _, damaged := errors.AsType[*Damage](err); damaged {
		return nil
	}
	if err == nil && (there == nil || there.Tenure != t.claim.Tenure && !t.replaces(there)) {
		t.taken = takenBy(there)
		return t.taken
	}
	return err
}

// isOurs reports whether this process still has the claim.
func (t *tenancy) isOurs(ctx context.Context) (bool, error) {
	there, err := readClaim(ctx, t.place)
	return err == nil && there != nil && (there.Tenure == t.claim.Tenure || t.replaces(there)), err
}

func (t *tenancy) renewLocked(ctx context.Context) error {
	if t.taken != nil {
		return t.taken
	}
	if err := t.look(ctx); err != nil {
		return err
	}
	return t.put(ctx, false)
}

// tenureText is the tenure of a claim.
func tenureText(number uint64, drawn [16]byte) string {
	if number == 0 {
		return fmt.Sprintf("%x", drawn)
	}
	return fmt.Sprintf("%s%d.%x", homeTenure, number, drawn)
}

// homeTenure begins the tenures of nodes of a cluster.
const homeTenure = "home."

// numberOfTenure returns the number of the tenure in a cluster that a claim is of; 0 if it is that of a single server.
func numberOfTenure(c *Claim) uint64 {
	text, ok := strings.CutPrefix(c.Tenure, homeTenure)
	text, _, _ = strings.Cut(text, ".")
	number, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return number
}

// replaces reports whether a claim is that of a node of this cluster that was replaced, and does not know it yet.
func (t *tenancy) replaces(there *Claim) bool {
	return t.number > 0 && there.Epoch == t.claim.Epoch && numberOfTenure(there) < t.number
}

// isReplacedBy reports whether a claim is that of the node of this cluster that has replaced this one.
func (t *tenancy) isReplacedBy(there *Claim) bool {
	return t.number > 0 && there.Epoch == t.claim.Epoch && numberOfTenure(there) > t.number
}

func takenBy(there *Claim) error {
	if there == nil {
		return fmt.Errorf("the claim was removed: %w", ErrTaken)
	}
	return fmt.Errorf("server %s has claimed it: %w", there.Epoch, ErrTaken)
}

// release says that this process writes no more, so that others need not wait.
func (t *tenancy) release(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken != nil {
		return nil
	}
	t.claim.Released = true
	return t.renewLocked(ctx)
}

func (t *tenancy) put(ctx context.Context, onlyNew bool) error {
	t.claim.Renewed = t.now().UTC().Truncate(time.Millisecond)
	t.claim.Count++
	text, err := sealClaim(&t.claim)
	if err != nil {
		return err
	}
	began := t.now().Round(0) // clocks that stop while the machine sleeps do not count
	if err := t.place.Put(ctx, claimName, text, onlyNew); err != nil {
		return err
	}
	t.seen = began
	return nil
}

// random is where tenures come from, unless Options say otherwise.
var random io.Reader = rand.Reader
