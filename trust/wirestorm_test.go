//go:build unix

package trust_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
)

// TestWireStorm has many clients of the SDKs' protocol come back at once, after the server was
// asked to end and after it was killed. None is told to stay away, all come back to what is
// there, and nobody is sent what he has.
func TestWireStorm(t *testing.T) {
	t.Parallel()
	count := length(200, 2000, 5000)
	most := fmt.Sprint(2*count + 1000)
	p := startProcess(t, "--dev", "--max-connections", most, "--max-connections-per-address", most, "--max-clients", fmt.Sprint(8*count))
	rest := newClient(t, p, 1)
	whole := model.New()
	write := func(path []string, body string) {
		rest.must(t, request{method: "PUT", target: target("default", path, false), body: body})
		if err := whole.Put(path, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		write(stormPlace(i), fmt.Sprintf(`{"name":"place %d","list":{"a":1,"b":[1,2,3]}}`, i))
	}
	s := newWireStorm(p, count)
	s.compare(whole)
	before := s.pushes()
	for _, end := range []func() error{p.terminate, func() error { p.kill(); return nil }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		s.compare(whole)
	}
	if again := s.pushes() - before; again != 0 {
		t.Errorf("clients that have what is there were sent %d pushes", again)
	}
	// What changes while they come back reaches those whom it is for.
	p.kill()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	write(append(stormPlace(3), "name"), `"another"`)
	s.compare(whole)
	if told := s.pushes() - before; told != (count+6)/10 {
		t.Errorf("a change was told %d times, want once to each of %d clients", told, (count+6)/10)
	}
	s.end()
	for _, problem := range s.books.found() {
		t.Error(problem)
	}
	figures.Report(t, "wirestorm", proof.Count("clients", count), proof.Count("connections", s.connections()), proof.Count("pushes", s.pushes()))
}

func stormPlace(i int) []string { return []string{"storm", fmt.Sprint("p", i%10)} }

// A wireStorm is many clients.
type wireStorm struct {
	clients []*wireClient
	books   account
	running sync.WaitGroup
}

func newWireStorm(p *process, count int) *wireStorm {
	s := &wireStorm{}
	for i := range count {
		c := newWireClient(fmt.Sprint("client ", i), dialWire(p, "default"), wireListen{path: stormPlace(i)})
		c.problem, c.isApart = s.books.problem, true
		s.clients = append(s.clients, c)
		s.running.Go(c.run)
	}
	return s
}

// compare waits until all clients are there, and looks at what they have.
func (s *wireStorm) compare(whole *model.Tree) {
	var comparing sync.WaitGroup
	for _, c := range s.clients {
		comparing.Go(func() { c.compare(whole) })
	}
	comparing.Wait()
}

func (s *wireStorm) pushes() (count int) {
	for _, c := range s.clients {
		count += c.pushed()
	}
	return count
}

func (s *wireStorm) connections() (count int) {
	for _, c := range s.clients {
		count += c.begun
	}
	return count
}

func (s *wireStorm) end() {
	for _, c := range s.clients {
		c.close()
	}
	s.running.Wait()
}
