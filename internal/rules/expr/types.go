package expr

// A Type is what is known of a part of an expression before it runs. Types are
// bits, so that sets of them say what an operator takes.
type Type uint16

const (
	// TypeError is the type of a part that was refused. It fits everywhere, so
	// that one mistake is reported once.
	TypeError Type = 1 << iota
	TypeBoolean
	TypeNumber
	TypeString
	TypeNull
	// TypePrimitive is null, boolean, number or string, known when it is there:
	// what val() and getPriority() return. It has the members of a string.
	TypePrimitive
	// TypeAny is auth and all below it: any member is there, at least as null.
	TypeAny
	// TypeOpaque is a primitive without members, as the values of query are, or
	// the outcome of ?: with branches that have nothing in common.
	TypeOpaque
	TypeQuery
	TypeSnapshot
	TypeMethod
	TypeRegex
	TypeList
)

// What operators take. The sets are those of the live service, which was asked
// about every type in every place.
const (
	typesComparable = TypeBoolean | TypeNumber | TypeString | TypeNull | TypePrimitive | TypeAny | TypeOpaque
	typesOrdered    = TypeNumber | TypeString | TypePrimitive | TypeAny | TypeOpaque
	typesNumeric    = TypeNumber | TypePrimitive | TypeAny | TypeOpaque
	typesTextual    = TypeString | TypePrimitive | TypeAny
	// typesMixed are the branches of ?: that differ and still make a primitive.
	typesMixed = TypeBoolean | TypeNumber | TypeString | TypeNull | TypePrimitive | TypeAny
)

// in reports whether t is one of a set of types, or was refused already.
func (t Type) in(set Type) bool { return t&(set|TypeError) != 0 }

// parameters say which arguments a method takes.
type parameters uint8

const (
	takesNothing parameters = iota
	takesText               // one string
	takesTwoTexts
	takesPattern
	takesKeys // nothing, or a list of strings
)

// A method is what can be called on a value of some type.
type method struct {
	takes   parameters
	returns Type
}

var snapshotMethods = map[string]method{
	"val":         {takesNothing, TypePrimitive},
	"getPriority": {takesNothing, TypePrimitive},
	"exists":      {takesNothing, TypeBoolean},
	"isNumber":    {takesNothing, TypeBoolean},
	"isString":    {takesNothing, TypeBoolean},
	"isBoolean":   {takesNothing, TypeBoolean},
	"parent":      {takesNothing, TypeSnapshot},
	"child":       {takesText, TypeSnapshot},
	"hasChild":    {takesText, TypeBoolean},
	"hasChildren": {takesKeys, TypeBoolean},
}

var stringMethods = map[string]method{
	"contains":    {takesText, TypeBoolean},
	"beginsWith":  {takesText, TypeBoolean},
	"endsWith":    {takesText, TypeBoolean},
	"matches":     {takesPattern, TypeBoolean},
	"replace":     {takesTwoTexts, TypeString},
	"toLowerCase": {takesNothing, TypeString},
	"toUpperCase": {takesNothing, TypeString},
}

var queryProperties = map[string]Type{
	"orderByKey":      TypeBoolean,
	"orderByValue":    TypeBoolean,
	"orderByPriority": TypeBoolean,
	"orderByChild":    TypeOpaque,
	"startAt":         TypeOpaque,
	"endAt":           TypeOpaque,
	"equalTo":         TypeOpaque,
	"limitToFirst":    TypeOpaque,
	"limitToLast":     TypeOpaque,
}

// methodOf returns the method that a name means on a target.
func methodOf(target Type, name string) (m method, ok bool) {
	switch {
	case target == TypeSnapshot:
		m, ok = snapshotMethods[name]
	case target&typesTextual != 0:
		m, ok = stringMethods[name]
	}
	return m, ok
}
