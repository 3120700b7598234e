package manifests

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../../packaging/cluster/compose.yaml"

// load reads a file as Compose does: by its schema, with all that refers to something else.
func load(file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory("../.."), cli.WithName("livetree"), cli.WithResolvedPaths(true))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

func TestCompose(t *testing.T) {
	project, err := load(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 3 {
		t.Fatalf("there are %d services, want 3", len(project.Services))
	}
	for name, service := range project.Services {
		if addr := service.Environment["LIVETREE_CLUSTER_ADDR"]; addr == nil || *addr != name+":9100" {
			t.Errorf("%s has the address %v", name, addr)
		}
		if list := service.Environment["LIVETREE_CLUSTER"]; list == nil || !strings.Contains(*list, name+":9100") {
			t.Errorf("%s is not in its list of nodes, %v", name, list)
		}
		if !service.ReadOnly {
			t.Errorf("the root of %s can be written to", name)
		}
		if len(service.Volumes) != 1 || service.Volumes[0].Source != name || service.Volumes[0].Target != "/data" || service.Volumes[0].Type != types.VolumeTypeVolume {
			t.Errorf("the volumes of %s are %+v, want its own at /data", name, service.Volumes)
		}
		if len(service.Secrets) != 1 || service.Secrets[0].Source != "cluster_key" {
			t.Errorf("%s has the secrets %+v, want the key of the cluster", name, service.Secrets)
		}
	}
}

// TestComposeStrict: what the test above rests on.
func TestComposeStrict(t *testing.T) {
	text, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	for old, wrong := range map[string]string{
		"stop_grace_period:":           "stop_grace:",
		"stop_grace_period: 30s":       "stop_grace_period: 30 seconds",
		"secrets: [cluster_key]":       "secrets: [no_key]",
		`volumes: ["node2:/data"]`:     `volumes: ["node4:/data"]`,
		"volumes: {node1: {}, node2: ": "volumes: {node1: {} ",
	} {
		broken := strings.Replace(string(text), old, wrong, 1)
		if broken == string(text) {
			t.Errorf("the file lacks %q", old)
			continue
		}
		file := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(file); err == nil {
			t.Errorf("%q in place of %q passes, want an error", wrong, old)
		}
	}
}
