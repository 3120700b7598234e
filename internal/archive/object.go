package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// An object, but for the claim and the manifests of bases, is
//
//	magic:4 kind:1 version:1 flags:1 zero:1
//	length:4 head        JSON; never encrypted, so that a server can go on with a line
//	                     that it cannot read any more
//	payload              compressed with zstd, then encrypted with age if the flag says so
//	sha256:32            of all bytes before
const (
	magic         = "LTAR"
	objectVersion = 1
	flagEncrypted = 1

	fixedBytes = len(magic) + 4 + 4
)

// The kinds of objects.
const (
	kindSegment byte = 'S'
	kindRows    byte = 'R'
	kindList    byte = 'L'
	kindIndex   byte = 'I'
)

// Bounds of what is decoded, so that no object takes more memory than its bytes are
// worth.
const (
	// MaxSegment is the size of a segment, before it is compressed, at which it should
	// be sent. One record may be larger.
	MaxSegment = 64 << 20
	// maxObject is more than any object takes: a record may hold a body of a write
	// that was put in one piece.
	maxObject = 1 << 30
	maxHead   = 64 << 10
	maxWindow = 8 << 20 // of zstd
)

// An object is what was read, checked against its hash, and not decompressed yet.
type object struct {
	encrypted bool
	head      []byte
	payload   []byte
	sum       Hash // of the whole object but its last 32 bytes, which are this
}

// A packer makes objects. It is used by one goroutine at a time.
type packer struct {
	recipients Recipients
	encoder    *zstd.Encoder
}

// pack makes an object of a head and a payload.
func (p *packer) pack(kind byte, head any, encrypt bool, payload ...[]byte) ([]byte, Hash, error) {
	text, err := json.Marshal(head)
	if err != nil || len(text) > maxHead {
		return nil, Hash{}, errors.Join(err, fmt.Errorf("a head of %d bytes", len(text)))
	}
	encrypt = encrypt && len(p.recipients) > 0
	var flags byte
	if encrypt {
		flags = flagEncrypted
	}
	var out bytes.Buffer
	out.WriteString(magic)
	out.Write([]byte{kind, objectVersion, flags, 0})
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
	out.Write(text)
	if err := p.compress(&out, encrypt, payload); err != nil {
		return nil, Hash{}, err
	}
	sum := Hash(sha256.Sum256(out.Bytes()))
	out.Write(sum[:])
	return out.Bytes(), sum, nil
}

func (p *packer) compress(out *bytes.Buffer, encrypt bool, payload [][]byte) error {
	var to io.WriteCloser = plain{out}
	if encrypt {
		var err error
		if to, err = p.recipients.encrypt(out); err != nil {
			return err
		}
	}
	if p.encoder == nil {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			return err
		}
		p.encoder = encoder
	}
	p.encoder.Reset(to)
	for _, piece := range payload {
		if _, err := p.encoder.Write(piece); err != nil {
			return err
		}
	}
	return errors.Join(p.encoder.Close(), to.Close())
}

// plain is a writer that is not encrypted.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// unpack checks an object and takes it apart. The result shares the content's memory.
func unpack(content []byte, kind byte, head any) (object, error) {
	var o object
	if len(content) < fixedBytes+sha256.Size {
		return o, fmt.Errorf("it has only %d bytes", len(content))
	}
	body, trailer := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	o.sum = sha256.Sum256(body)
	switch {
	case !bytes.Equal(o.sum[:], trailer):
		return o, errors.New("its bytes do not have the hash that it ends with")
	case string(body[:len(magic)]) != magic || body[len(magic)] != kind:
		return o, errors.New("it is an object of another kind")
	case body[len(magic)+1] != objectVersion || body[len(magic)+2]&^flagEncrypted != 0 || body[len(magic)+3] != 0:
		return o, ErrNewer
	}
	o.encrypted = body[len(magic)+2]&flagEncrypted != 0
	length := binary.BigEndian.Uint32(body[fixedBytes-4:])
	if body = body[fixedBytes:]; length > maxHead || int(length) > len(body) {
		return o, fmt.Errorf("its head has %d bytes", length)
	}
	o.head, o.payload = body[:length], body[length:]
	if err := json.Unmarshal(o.head, head); err != nil {
		return o, fmt.Errorf("its head: %w", err)
	}
	return o, nil
}

// open returns the payload, decrypted and decompressed.
func (o object) open(identities Identities) (io.ReadCloser, error) {
	var from io.Reader = bytes.NewReader(o.payload)
	if o.encrypted {
		var err error
		if from, err = identities.decrypt(from); err != nil {
			return nil, err
		}
	}
	decoder, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}
