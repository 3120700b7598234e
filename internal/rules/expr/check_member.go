package expr

// This file checks members and calls.

func (c *checker) member(m *member) Type {
	target := c.check(m.target)
	if m.index != nil {
		return c.computed(m, target)
	}
	switch {
	case target == TypeError:
		return TypeError
	case target == TypeAny:
		return TypeAny // even auth.uid.length.foo; a call is looked at elsewhere
	case target == TypeQuery:
		if t, ok := queryProperties[m.name]; ok {
			return t
		}
	case target == TypeSnapshot, target.in(typesTextual):
		if target != TypeSnapshot && m.name == "length" {
			return TypeNumber
		}
		if _, ok := methodOf(target, m.name); ok {
			return TypeMethod
		}
	default:
		return c.fail(m, "Invalid property access: target is not an object.")
	}
	return c.fail(m, "No such method/property '%s'.", m.name)
}

// computed types target[index] whose index is known only at run time.
func (c *checker) computed(m *member, target Type) Type {
	index := c.check(m.index)
	switch {
	case target == TypeError || index == TypeError:
		return TypeError
	case target == TypeAny && index.in(typesOrdered):
		return TypeAny
	}
	return c.fail(m, "Invalid property access.")
}

func (c *checker) call(n *call) Type {
	callee := c.check(n.callee)
	if callee == TypeError {
		c.checkAll(n.args)
		return TypeError
	}
	if m, ok := n.callee.(*member); ok && m.index == nil {
		if method, ok := methodOf(m.target.at().typ, m.name); ok {
			return c.arguments(n, m.name, method)
		}
	}
	c.checkAll(n.args)
	return c.fail(n, "Type error: Function call on target that is not a function.")
}

func (c *checker) checkAll(nodes []node) {
	for _, n := range nodes {
		c.check(n)
	}
}

// arguments checks what a method is called with, and returns what it returns.
func (c *checker) arguments(n *call, name string, m method) Type {
	var ok bool
	switch m.takes {
	case takesNothing:
		ok = c.count(n, 0, name+"() expects no arguments.")
	case takesText:
		ok = c.count(n, 1, name+"() expects 1 argument.") && c.text(n.args[0], name+"() expects a string argument.")
	case takesTwoTexts:
		ok = c.count(n, 2, name+"() expects two arguments.") &&
			c.text(n.args[0], "Argument 1 of "+name+"() must be a string.") &&
			c.text(n.args[1], "Argument 2 of "+name+"() must be a string.")
	case takesPattern:
		ok = c.count(n, 1, name+"() expects 1 regular expression literal argument.") && c.pattern(n.args[0], name)
	case takesKeys:
		ok = c.keys(n, name)
	}
	if !ok {
		return TypeError
	}
	return m.returns
}

// count refuses a call with another number of arguments.
func (c *checker) count(n *call, want int, otherwise string) bool {
	if len(n.args) != want {
		c.checkAll(n.args)
		c.fail(n, "%s", otherwise)
	}
	return len(n.args) == want
}

// text refuses an argument that cannot be a string.
func (c *checker) text(arg node, otherwise string) bool {
	if !c.check(arg).in(typesTextual) {
		c.fail(arg, "%s", otherwise)
		return false
	}
	return true
}

// pattern refuses an argument that is not written as a regular expression.
func (c *checker) pattern(arg node, name string) bool {
	_, ok := arg.(*pattern)
	if c.check(arg) != TypeError && !ok {
		c.fail(arg, "%s() expects a regular expression literal argument.", name)
	}
	return ok
}

// keys checks the argument of hasChildren, the only place where a list may be.
func (c *checker) keys(n *call, name string) bool {
	if len(n.args) == 0 {
		return true
	}
	if len(n.args) > 1 {
		c.fail(n, "%s() expects only a single argument (containing an array of child names).", name)
		return false
	}
	keys, ok := n.args[0].(*list)
	if !ok {
		if c.check(n.args[0]) != TypeError {
			c.fail(n.args[0], "%s() expects an array of child names.", name)
		}
		return false
	}
	keys.typ = TypeList
	for _, item := range keys.items {
		ok = c.text(item, name+"() expects an array of strings.") && ok
	}
	return ok
}
