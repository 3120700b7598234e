package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// parseJSON reads body, which must be one JSON value and nothing else. It returns
// nil, bool, string, json.Number, []any or map[string]any.
//
// encoding/json knows the grammar, but it forgives three things that the contract
// refuses: invalid UTF-8, lone surrogates and repeated keys. The first two are
// looked for in the raw text, the third while the value is built from tokens.
func parseJSON(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("body is not valid UTF-8")
	}
	if !json.Valid(body) {
		return nil, errors.New("body is not one JSON value")
	}
	if err := checkSurrogates(body); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return parseValue(dec)
}

// An escape in a string of valid JSON text. The first alternative that fits wins,
// so a surrogate that is matched alone is one without its partner.
var (
	escape        = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\[^u]`)
	loneSurrogate = regexp.MustCompile(`^\\u[dD][89a-fA-F]..$`)
)

// checkSurrogates refuses \ud800 to \udfff outside a pair. body is valid JSON, so
// a backslash always begins an escape.
func checkSurrogates(body []byte) error {
	for _, e := range escape.FindAll(body, -1) {
		if loneSurrogate.Match(e) {
			return fmt.Errorf("lone surrogate %s", e)
		}
	}
	return nil
}

// parseValue builds the next value from dec.
func parseValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		return parseArray(dec)
	case json.Delim('{'):
		return parseObject(dec)
	}
	return token, nil
}

func parseArray(dec *json.Decoder) (any, error) {
	elements := []any{}
	for dec.More() {
		v, err := parseValue(dec)
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	_, err := dec.Token() // ]
	return elements, err
}

func parseObject(dec *json.Decoder) (any, error) {
	members := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("key %v is not a string", token)
		}
		if _, repeated := members[key]; repeated {
			return nil, fmt.Errorf("repeated key %q", key)
		}
		if members[key], err = parseValue(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token() // }
	return members, err
}
