// Command image writes an image for containers with nothing in it but the server: image BINARY VERSION ARCH CA >FILE.
// ARCH is amd64, arm64 or armv7, and CA a file with the authorities that the server trusts, as
// /etc/ssl/certs/ca-certificates.crt has them.
//
// It needs no other program, no rights and no base image, and writes the same bytes for the same files. The time in
// the image is SOURCE_DATE_EPOCH. The archive has the form that docker load and podman load read, which keeps the health check.
// What the image says of itself must be what packaging/Dockerfile says; scripts/try-image.sh runs it.
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
	arch, variant := args[2], ""
	switch arch {
	case "amd64", "arm64":
	case "armv7":
		arch, variant = "arm", "v7"
	default:
		return fmt.Errorf("ARCH is %q: want amd64, arm64 or armv7", arch)
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
	config, err := json.Marshal(newConfig(args[1], arch, variant, layer, made))
	if err != nil {
		return err
	}
	return writeArchive(out, args[1], config, layer, made)
}

// newLayer returns the files of the image as a tar.
func newLayer(binary, authorities string, made time.Time) ([]byte, error) {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	dir := func(name string, owner int, mode int64) error {
		return files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: made})
	}
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

func put(files *tar.Writer, name string, text []byte, mode int64, made time.Time) error {
	if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text)), ModTime: made}); err != nil {
		return err
	}
	_, err := files.Write(text)
	return err
}

type object = map[string]any

// newConfig returns what the image says of itself.
func newConfig(version, arch, variant string, layer []byte, made time.Time) object {
	sum := "sha256:" + digest(layer)
	config := object{
		"created": made, "os": "linux", "architecture": arch,
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
				"org.opencontainers.image.title": "livetree", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{sum}},
		"history": []object{{"created": made, "created_by": "tools/image"}},
	}
	if variant != "" {
		config["variant"] = variant
	}
	return config
}

// writeArchive writes the image, with its layer compressed.
func writeArchive(out io.Writer, version string, config, layer []byte, made time.Time) error {
	packed, err := compress(layer)
	if err != nil {
		return err
	}
	configName, layerName := digest(config)+".json", digest(packed)+".tar.gz"
	manifest, err := json.Marshal([]object{{"Config": configName, "RepoTags": []string{"localhost/livetree:" + version}, "Layers": []string{layerName}}})
	if err != nil {
		return err
	}
	files := tar.NewWriter(out)
	return errors.Join(
		put(files, layerName, packed, 0o644, made),
		put(files, configName, config, 0o644, made),
		put(files, "manifest.json", manifest, 0o644, made),
		files.Close())
}

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
