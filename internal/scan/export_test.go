package scan

// Hold takes all turns of the pool until release is called.
func (p *Pool) Hold() (release func()) {
	for range cap(p.turns) {
		p.turns <- struct{}{}
	}
	return func() {
		for range cap(p.turns) {
			<-p.turns
		}
	}
}
