package manifests

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
)

const kubernetesFile = "../../packaging/cluster/kubernetes.yaml"

// decode reads all documents of a file for Kubernetes.
func decode(text []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		objects = append(objects, object)
	}
}

// A deployment is what the file has, by kind.
type deployment struct {
	services []*core.Service
	budget   *policy.PodDisruptionBudget
	set      *apps.StatefulSet
}

func readDeployment(t *testing.T) deployment {
	t.Helper()
	text, err := os.ReadFile(kubernetesFile)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	var d deployment
	for _, object := range objects {
		switch object := object.(type) {
		case *core.Service:
			d.services = append(d.services, object)
		case *policy.PodDisruptionBudget:
			d.budget = object
		case *apps.StatefulSet:
			d.set = object
		default:
			t.Errorf("the file has a %T", object)
		}
		name := object.(meta.Object).GetName()
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			t.Errorf("%T cannot be called %q: %s", object, name, problems)
		}
	}
	if d.budget == nil || d.set == nil || len(d.services) != 2 {
		t.Fatalf("the file has %d objects, want two services, a budget and a set", len(objects))
	}
	return d
}

// TestSelectors: what selects nodes must select those of the set, or traffic goes nowhere.
func TestSelectors(t *testing.T) {
	d := readDeployment(t)
	pod := labels.Set(d.set.Spec.Template.Labels)
	selectors := map[string]*meta.LabelSelector{"the set": d.set.Spec.Selector, "the budget": d.budget.Spec.Selector}
	for _, service := range d.services {
		selectors["the service "+service.Name] = &meta.LabelSelector{MatchLabels: service.Spec.Selector}
	}
	for i, term := range d.set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selectors[fmt.Sprintf("affinity %d", i)] = term.LabelSelector
	}
	for name, selector := range selectors {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(pod) {
			t.Errorf("%s selects %v, %v: not the nodes, which are %v", name, selector, err, pod)
		}
	}
}

// TestNames: a set names its service, a mount its volume, a port of a service one of the container.
func TestNames(t *testing.T) {
	d := readDeployment(t)
	spec := d.set.Spec.Template.Spec
	if len(spec.Containers) != 1 {
		t.Fatalf("there are %d containers, want 1", len(spec.Containers))
	}
	container := spec.Containers[0]
	var volumes []string
	for _, claim := range d.set.Spec.VolumeClaimTemplates {
		volumes = append(volumes, claim.Name)
		if claim.Spec.Resources.Requests.Storage().IsZero() || len(claim.Spec.AccessModes) == 0 {
			t.Errorf("the claim %s asks for nothing", claim.Name)
		}
	}
	for _, volume := range spec.Volumes {
		volumes = append(volumes, volume.Name)
	}
	for _, mount := range container.VolumeMounts {
		if !slices.Contains(volumes, mount.Name) {
			t.Errorf("%s is mounted, there are %q", mount.Name, volumes)
		}
	}
	isGoverned := false
	for _, service := range d.services {
		isGoverned = isGoverned || service.Name == d.set.Spec.ServiceName && service.Spec.ClusterIP == core.ClusterIPNone
		for _, port := range service.Spec.Ports {
			if !listens(container, port) {
				t.Errorf("port %s of the service %s leads to %s, where nothing listens", port.Name, service.Name, port.TargetPort.String())
			}
		}
	}
	if !isGoverned {
		t.Errorf("there is no service %s without an address of its own: nodes would have no names", d.set.Spec.ServiceName)
	}
}

func listens(container core.Container, port core.ServicePort) bool {
	target := port.TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(port.Port)
	}
	return slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool {
		return p.ContainerPort == target.IntVal && target.Type == intstr.Int || p.Name != "" && p.Name == target.StrVal
	})
}

// TestRestricted: the pods pass the profile "restricted" of Kubernetes' pod security standards, with a root that is read-only.
func TestRestricted(t *testing.T) {
	d := readDeployment(t)
	pod, container := d.set.Spec.Template.Spec.SecurityContext, d.set.Spec.Template.Spec.Containers[0].SecurityContext
	if pod == nil || container == nil {
		t.Fatal("there is no securityContext of the pod, or of the container")
	}
	isTrue := func(b *bool) bool { return b != nil && *b }
	if !isTrue(pod.RunAsNonRoot) || pod.RunAsUser == nil || *pod.RunAsUser == 0 {
		t.Error("the server runs as root")
	}
	if pod.SeccompProfile == nil || pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Error("system calls are not filtered")
	}
	if container.AllowPrivilegeEscalation == nil || *container.AllowPrivilegeEscalation {
		t.Error("the server may gain privileges")
	}
	if container.Capabilities == nil || !slices.Equal(container.Capabilities.Drop, []core.Capability{"ALL"}) || len(container.Capabilities.Add) > 0 {
		t.Error("the server keeps capabilities")
	}
	if !isTrue(container.ReadOnlyRootFilesystem) {
		t.Error("the root of the image can be written to")
	}
}

// TestStrict: what these tests rest on. A field that is misspelt, or there twice, is found.
func TestStrict(t *testing.T) {
	text, err := os.ReadFile(kubernetesFile)
	if err != nil {
		t.Fatal(err)
	}
	for old, wrong := range map[string]string{
		"publishNotReadyAddresses:": "publishNotReadyAdresses:",
		"replicas: 3":               "replicas: three",
		"  maxUnavailable: 1":       "  maxUnavailable: 1\n  maxUnavailable: 2",
		"kind: StatefulSet":         "kind: StatefullSet",
		"defaultMode: 0440":         "mode: 0440",
	} {
		broken := bytes.Replace(text, []byte(old), []byte(wrong), 1)
		if bytes.Equal(broken, text) {
			t.Errorf("the file lacks %q", old)
		} else if _, err := decode(broken); err == nil {
			t.Errorf("%q in place of %q passes, want an error", wrong, old)
		}
	}
}
