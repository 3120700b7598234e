//go:build !no_cluster

package etcdlog

// Kill stops a member as hard as a process can without ending: nothing is handed over.
func Kill(m Member) {
	e := m.(*member).etcd
	e.Server.HardStop()
	m.Stop()
}
