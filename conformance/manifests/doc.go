// Package manifests holds the files in packaging/ for Kubernetes and Docker Compose to the types and schemas of those
// programs.
//
// The types are those of k8s.io/api, read strictly: a field that they do not have, or have twice, is an error. Compose's own
// loader reads the other file, with its schema. Both are large, so this is a module of its own: `make manifests`. Neither
// says whether names in the files lead anywhere, such as that of a volume; the tests do.
package manifests
