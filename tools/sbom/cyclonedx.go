package main

import (
	"debug/buildinfo"
	"path"
	"strings"
)

// A bom is a CycloneDX 1.5 document.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// cyclonedx returns the document of a binary. It holds no serial number: it must be the same for the
// same binary.
func cyclonedx(info *buildinfo.BuildInfo, version, created string) bom {
	program := module("application", info.Main.Path, version)
	program.Name = path.Base(info.Path)
	b := bom{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: metadata{created, program}}
	all := dependency{Ref: program.Ref}
	for _, m := range modules(info) {
		c := module("library", m.Path, m.Version)
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b
}

func module(kind, name, version string) component {
	purl := "pkg:golang/" + name + "@" + version
	return component{Type: kind, Ref: purl, Name: name, Version: version, PURL: purl}
}

// A linked is a module in a binary.
type linked struct{ Path, Version string }

// modules returns what is linked into a binary, the standard library first.
func modules(info *buildinfo.BuildInfo) []linked {
	list := []linked{{"std", strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, linked{m.Path, m.Version})
	}
	return list
}
