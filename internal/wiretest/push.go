package wiretest

import (
	"slices"
	"strings"
)

// gotPush checks a push: its form, and that there is a listen for it.
func (c *Conversation) gotPush(d map[string]value) error {
	action := d["a"].text()
	b, isObject := d["b"].object()
	if !isObject || len(d) != 2 {
		return violation("a push %s: it has a and b, which is an object", objectText(d))
	}
	var err error
	switch action {
	case "d", "m", "rm":
		err = c.gotChange(action, b)
	case "c":
		err = c.gotCancel(b)
	case "ac":
		if !b["s"].isText() || !b["d"].isText() || len(b) != 2 {
			err = violation("s and d are strings")
		}
	case "sd":
		if !b["msg"].isText() || len(b) != 1 {
			err = violation("msg is a string")
		}
	default:
		err = violation("an unknown action")
	}
	if err != nil {
		return violation("%s: %v", objectText(d), err)
	}
	return nil
}

func (c *Conversation) gotChange(action string, b map[string]value) error {
	body, hasBody := b["d"]
	tag, hasTag := b["t"]
	members := 2
	if hasTag {
		members++
		if _, ok := tag.integer(); !ok {
			return violation("t is an integer")
		}
	}
	switch {
	case !b["p"].isText() || !hasBody || len(b) != members:
		return violation("it has p, d and perhaps t; iOS ignores it without")
	case strings.HasPrefix(b["p"].text(), "/"):
		return violation("the path begins with a slash")
	}
	target := c.target(b["p"].text(), tag.String(), hasTag)
	switch {
	case target == nil:
		return violation("there is no such listen")
	case action == "rm" && !target.compound:
		return violation("the listen brought no compound hash; JavaScript drops it")
	}
	return checkChange(action, body)
}

// target returns the newest listen that the push is for; nil if there is none.
func (c *Conversation) target(path, tag string, hasTag bool) *listen {
	for _, l := range slices.Backward(c.listens) {
		below := l.path == "" || path == l.path || strings.HasPrefix(path, l.path+"/")
		if below && l.tag == tag && hasTag == (l.tag != "") {
			return l
		}
	}
	return nil
}

func checkChange(action string, body value) error {
	switch action {
	case "d":
		return checkTree(body)
	case "m":
		children, ok := body.object()
		if !ok {
			return violation("d of m is an object")
		}
		for key, child := range children {
			if key == "" || strings.HasPrefix(key, "/") {
				return violation("the key %q", key)
			}
			if err := checkTree(child); err != nil {
				return err
			}
		}
		return nil
	}
	ranges, ok := body.list()
	if !ok || len(ranges) == 0 {
		return violation("d of rm is a list")
	}
	for _, r := range ranges {
		if err := checkRange(r); err != nil {
			return err
		}
	}
	return nil
}

func checkRange(r value) error {
	object, _ := r.object()
	if _, ok := object["m"]; !ok {
		return violation("a range without m")
	}
	for name, member := range object {
		switch {
		case name == "m":
			if err := checkTree(member); err != nil {
				return err
			}
		case (name == "s" || name == "e") && member.isText():
		default:
			return violation("a range with %s %s", name, member)
		}
	}
	return nil
}

// gotCancel checks the end of a listen. JavaScript finds a query by the query object as
// it was sent, in a list.
func (c *Conversation) gotCancel(b map[string]value) error {
	ended := &listen{path: b["p"].text()}
	members := 1
	if q, ok := b["q"]; ok {
		list, isList := q.list()
		if !isList || len(list) != 1 {
			return violation("q is a list with one query")
		}
		ended.query = list[0].canonical()
		members++
	}
	if !b["p"].isText() || len(b) != members {
		return violation("it has p and perhaps q")
	}
	for i, l := range c.listens {
		if l.is(ended) {
			c.listens = slices.Delete(c.listens, i, i+1)
			return nil
		}
	}
	return violation("there is no such listen")
}

// checkTree checks data in the form that SDKs read: no arrays, nothing empty inside, .value and
// .priority where they belong.
func checkTree(v value) error {
	if v.isNull() {
		return nil
	}
	return checkNode(v)
}

func checkNode(v value) error {
	children, isObject := v.object()
	_, isList := v.list()
	switch {
	case isList:
		return violation("an array in the data: objects are never printed as such")
	case v.isNull():
		return violation("null inside the data")
	case !isObject:
		return nil
	case len(children) == 0:
		return violation("an empty object in the data")
	}
	leaf, isLeaf := children[".value"]
	priority, hasPriority := children[".priority"]
	switch {
	case hasPriority && !priority.isLeaf():
		return violation("the priority %s", priority)
	case isLeaf && (!leaf.isLeaf() || !hasPriority || len(children) != 2):
		return violation("the leaf %s", v)
	case hasPriority && len(children) == 1:
		return violation("a priority of nothing: %s", v)
	}
	for key, child := range children {
		isKey := key != "" && !strings.ContainsAny(key, "./#$[]")
		if !isKey && key != ".value" && key != ".priority" {
			return violation("the key %q in the data", key)
		}
		if err := checkNode(child); err != nil {
			return err
		}
	}
	return nil
}
