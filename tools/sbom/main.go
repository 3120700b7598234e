// Command sbom prints which modules a Go binary was built from, as an SPDX 2.3 or a CycloneDX 1.5
// document: sbom BINARY VERSION spdx|cyclonedx. It reads what the linker put into the binary, so
// it lists what is in it and nothing else. The time of the document is SOURCE_DATE_EPOCH: it must be the same for the same commit.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strconv"
	"time"
)

type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string     `json:"name"`
	SPDXID           string     `json:"SPDXID"`
	VersionInfo      string     `json:"versionInfo"`
	DownloadLocation string     `json:"downloadLocation"`
	FilesAnalyzed    bool       `json:"filesAnalyzed"`
	ExternalRefs     []external `json:"externalRefs,omitempty"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 || args[2] != "spdx" && args[2] != "cyclonedx" {
		return fmt.Errorf("usage: sbom BINARY VERSION spdx|cyclonedx")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: want the seconds of the commit: %w", err)
	}
	created := time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if args[2] == "cyclonedx" {
		return out.Encode(cyclonedx(info, args[1], created))
	}
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
		Name:              path.Base(info.Path) + " " + args[1],
		DocumentNamespace: "https://" + info.Path + "/sbom/" + args[1],
		CreationInfo:      creation{Created: created, Creators: []string{"Tool: livetree-sbom"}},
	}
	d.add(info.Main.Path, args[1], "DESCRIBES")
	for _, m := range modules(info) {
		d.add(m.Path, m.Version, "DEPENDS_ON")
	}
	return out.Encode(d)
}

// add adds a module: what the document describes, or what that depends on.
func (d *document) add(path, version, relation string) {
	id := fmt.Sprintf("SPDXRef-Package-%d", len(d.Packages))
	d.Packages = append(d.Packages, spdxPackage{
		Name: path, SPDXID: id, VersionInfo: version, DownloadLocation: "NOASSERTION",
		ExternalRefs: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	})
	from := "SPDXRef-DOCUMENT"
	if relation != "DESCRIBES" {
		from = "SPDXRef-Package-0"
	}
	d.Relationships = append(d.Relationships, relationship{from, relation, id})
}
