package message

// maxHashes bounds how many ranges a compound hash may have.
const maxHashes = 10_000

// CompoundHash returns the hashes of ranges, and the posts between them, that a client
// sent; false if it sent none that can be read. More is known of them only by whoever
// compares them.
func (q *Request) CompoundHash() (hashes, posts []string, ok bool) {
	if isNull(q.Compound) {
		return nil, nil, false
	}
	err := parse(q.Compound, func(name string, value []byte) error {
		var err error
		switch name {
		case "hs":
			hashes, err = texts(value)
		case "ps":
			posts, err = texts(value)
		}
		return err
	})
	return hashes, posts, err == nil && hashes != nil && posts != nil
}

// texts reads a list of strings.
func texts(list []byte) ([]string, error) {
	r := readers.Get().(*reader)
	defer r.free()
	r.begin(list)
	if first, err := r.ReadToken(); err != nil || first.Kind() != '[' {
		return nil, ErrUnreadable
	}
	all := []string{}
	for r.PeekKind() == '"' && len(all) <= maxHashes {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		text, ok := plainText(value)
		if !ok {
			return nil, ErrUnreadable
		}
		all = append(all, text)
	}
	if last, err := r.ReadToken(); err != nil || last.Kind() != ']' {
		return nil, ErrUnreadable
	}
	return all, nil
}

// maxSDKs bounds how many SDKs a client may count at a time: it is one.
const maxSDKs = 8

// SDKs returns the names of the SDKs that Stats count, such as js for
// {"sdk.js.12-19-0":1}. They are words of lower-case letters, digits and underscores.
func (q *Request) SDKs() []string {
	var names []string
	_ = parse(q.Counters, func(name string, _ []byte) error {
		if sdk, ok := sdkName(name); ok && len(names) < maxSDKs {
			names = append(names, sdk)
		}
		return nil
	}) // what cannot be read is not counted
	return names
}

// sdkName returns the name of an SDK in that of a counter: sdk.<name>.<version>.
func sdkName(counter string) (string, bool) {
	const prefix, longest = "sdk.", 24
	if len(counter) < len(prefix) || counter[:len(prefix)] != prefix {
		return "", false
	}
	rest := counter[len(prefix):]
	for i, c := range []byte(rest) {
		switch {
		case c == '.' && i > 0:
			return rest[:i], true
		case i == longest, (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_':
			return "", false
		}
	}
	return "", false
}
