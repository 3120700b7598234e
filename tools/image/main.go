// Command image writes an image for containers with nothing in it but the server: image BINARY VERSION ARCH CA >FILE.
// ARCH is amd64, arm64 or armv7, and CA a file with the authorities that the server trusts, as
// /etc/ssl/certs/ca-certificates.crt has them.
//
// It needs no other program, no rights and no base image, and writes the same bytes for the same files. The time in
// the image is SOURCE_DATE_EPOCH. What the image says of itself must be what packaging/Dockerfile says; scripts/try-image.sh runs it.
//
// The archive is an image layout of OCI: index.json leads to a manifest, that one to the configuration and the layer, all by their
// digests. It also has the manifest.json of Docker's archives, which leads to the same two files: a docker load without containerd
// knows no other, and podman finds the health check there alone, since OCI has none.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"time"
)

// user is who the server runs as, and owns the data.
const user = 65532

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 4 {
		return errors.New("usage: image BINARY VERSION ARCH CA >FILE")
	}
	name := reference{version: args[1], arch: args[2]}
	switch name.arch {
	case "amd64", "arm64":
	case "armv7":
		name.arch, name.variant = "arm", "v7"
	default:
		return fmt.Errorf("ARCH is %q: want amd64, arm64 or armv7", name.arch)
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: want the seconds of the commit: %w", err)
	}
	made := time.Unix(seconds, 0).UTC()
	layer, err := newLayer(args[0], args[3], made)
	if err != nil {
		return err
	}
	config, err := json.Marshal(newConfig(name, layer, made))
	if err != nil {
		return err
	}
	return writeArchive(out, name, config, layer, made)
}

// A reference says which image it is: of what version, and for which processor.
type reference struct{ version, arch, variant string }

func (r reference) tagged() string { return "localhost/livetree:" + r.version }

func (r reference) platform() object {
	platform := object{"os": "linux", "architecture": r.arch}
	if r.variant != "" {
		platform["variant"] = r.variant
	}
	return platform
}

// newLayer returns the files of the image as a tar.
func newLayer(binary, authorities string, made time.Time) ([]byte, error) {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	dir := func(name string, owner int, mode int64) error { return directory(files, name, owner, mode, made) }
	file := func(name, from string, mode int64) error {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return put(files, name, text, mode, made)
	}
	// The last one writes the rest, so the bytes are taken after it.
	err := errors.Join(
		dir("data/", user, 0o700),
		dir("etc/", 0, 0o755), dir("etc/ssl/", 0, 0o755), dir("etc/ssl/certs/", 0, 0o755),
		file("etc/ssl/certs/ca-certificates.crt", authorities, 0o644),
		file("livetree", binary, 0o755),
		files.Close())
	return layer.Bytes(), err
}

func directory(files *tar.Writer, name string, owner int, mode int64, made time.Time) error {
	return files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: made})
}

func put(files *tar.Writer, name string, text []byte, mode int64, made time.Time) error {
	if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text)), ModTime: made}); err != nil {
		return err
	}
	_, err := files.Write(text)
	return err
}

type object = map[string]any

// newConfig returns what the image says of itself.
func newConfig(name reference, layer []byte, made time.Time) object {
	sum := "sha256:" + digest(layer)
	config := object{
		"created": made,
		"config": object{
			"User":         fmt.Sprintf("%d:%d", user, user),
			"Env":          []string{"LIVETREE_DATA=/data", "LIVETREE_ADDR=:9000"},
			"Entrypoint":   []string{"/livetree"},
			"Cmd":          []string{"serve"},
			"ExposedPorts": object{"9000/tcp": object{}},
			"Volumes":      object{"/data": object{}},
			"StopSignal":   "SIGTERM",
			"Healthcheck": object{
				"Test": []string{"CMD", "/livetree", "ready"}, "Interval": 10 * time.Second, "Timeout": 5 * time.Second, "StartPeriod": 30 * time.Second,
			},
			"Labels": object{
				"org.opencontainers.image.title": "livetree", "org.opencontainers.image.version": name.version, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{sum}},
		"history": []object{{"created": made, "created_by": "tools/image"}},
	}
	maps.Copy(config, name.platform())
	return config
}

// writeArchive writes the image, with its layer compressed.
func writeArchive(out io.Writer, name reference, config, layer []byte, made time.Time) error {
	packed, err := compress(layer)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": ociManifest,
		"config": describe(ociConfig, config), "layers": []object{describe(ociLayer, packed)},
	})
	if err != nil {
		return err
	}
	entry := describe(ociManifest, manifest)
	entry["platform"] = name.platform()
	// The first is what containerd, Docker and podman call the image, the second what skopeo finds it by.
	entry["annotations"] = object{"io.containerd.image.name": name.tagged(), "org.opencontainers.image.ref.name": name.version}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{entry}})
	if err != nil {
		return err
	}
	docker, err := json.Marshal([]object{{"Config": blob(config), "RepoTags": []string{name.tagged()}, "Layers": []string{blob(packed)}}})
	if err != nil {
		return err
	}
	files := tar.NewWriter(out)
	return errors.Join(
		directory(files, "blobs/", 0, 0o755, made), directory(files, "blobs/sha256/", 0, 0o755, made),
		put(files, blob(packed), packed, 0o644, made),
		put(files, blob(config), config, 0o644, made),
		put(files, blob(manifest), manifest, 0o644, made),
		put(files, "index.json", index, 0o644, made),
		put(files, "manifest.json", docker, 0o644, made),
		put(files, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644, made),
		files.Close())
}

// The kinds of files of an image layout.
const (
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// describe returns what leads to a file of the layout.
func describe(kind string, text []byte) object {
	return object{"mediaType": kind, "digest": "sha256:" + digest(text), "size": len(text)}
}

// blob returns the name of a file of the layout.
func blob(text []byte) string { return "blobs/sha256/" + digest(text) }

func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close()) // only then are all bytes there
	return packed.Bytes(), err
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
