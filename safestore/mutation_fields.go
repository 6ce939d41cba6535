package safestore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxChangedFields is how many paths are worth reading.
const maxChangedFields = 10

// changedFields returns the paths of the fields in which two objects of one type
// differ: the first of them, and how many more there are. None if the objects are
// alike.
func changedFields(was, is runtime.Object) (paths []string, more int) {
	if reflect.DeepEqual(was, is) {
		return nil, 0
	}
	var c fieldChanges
	if content, ok := was.(runtime.Unstructured); ok {
		c.compareMaps("", reflect.ValueOf(content.UnstructuredContent()),
			reflect.ValueOf(is.(runtime.Unstructured).UnstructuredContent()))
	} else {
		c.compareStructs("", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem())
	}
	return c.paths, c.more
}

// fieldChanges collects the paths of fields that differ. It follows the JSON form
// of an object, but compares what is in memory: a map that is nil and one that is
// empty are two things.
type fieldChanges struct {
	paths []string
	more  int
}

func (c *fieldChanges) add(path string) {
	if len(c.paths) == maxChangedFields {
		c.more++
		return
	}
	c.paths = append(c.paths, path)
}

func (c *fieldChanges) compare(path string, was, is reflect.Value) {
	switch was.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case was.IsNil() && is.IsNil():
		case was.IsNil() || is.IsNil() || was.Elem().Type() != is.Elem().Type():
			c.add(path)
		case was.Kind() == reflect.Pointer && was.Pointer() == is.Pointer(): // not copied, perhaps endless
		default:
			c.compare(path, was.Elem(), is.Elem())
		}
	case reflect.Struct:
		if !isScalar(was.Type()) {
			c.compareStructs(path, was, is)
		} else if !sameScalar(was, is) {
			c.add(path)
		}
	case reflect.Map:
		c.compareMaps(path, was, is)
	case reflect.Slice:
		c.compareSlices(path, was, is)
	case reflect.Array:
		c.compareElements(path, was, is)
	case reflect.Func: // they cannot be compared
	default:
		if !was.Equal(is) {
			c.add(path)
		}
	}
}

func (c *fieldChanges) compareStructs(path string, was, is reflect.Value) {
	for n := range was.NumField() {
		field := was.Type().Field(n)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := path
		switch {
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct && !isScalar(field.Type):
			// Its fields are this one's.
		case name == "" || name == "-":
			at = join(path, field.Name)
		default:
			at = join(path, name)
		}
		c.compare(at, was.Field(n), is.Field(n))
	}
}

func (c *fieldChanges) compareMaps(path string, was, is reflect.Value) {
	if was.Len() == 0 && is.Len() == 0 && was.IsNil() != is.IsNil() {
		c.add(path)
	}
	keys := map[string]reflect.Value{} // by path
	for _, key := range slices.Concat(was.MapKeys(), is.MapKeys()) {
		keys[pathOfKey(path, was.Type(), key)] = key
	}
	for _, at := range slices.Sorted(maps.Keys(keys)) {
		a, b := was.MapIndex(keys[at]), is.MapIndex(keys[at])
		if a.IsValid() && b.IsValid() {
			c.compare(at, a, b)
		} else {
			c.add(at)
		}
	}
}

func (c *fieldChanges) compareSlices(path string, was, is reflect.Value) {
	switch {
	case was.Len() == 0 && is.Len() == 0 && was.IsNil() != is.IsNil():
		c.add(path)
	case was.Type().Elem().Kind() != reflect.Uint8:
		c.compareElements(path, was, is)
	case !bytes.Equal(was.Bytes(), is.Bytes()): // a string in JSON
		c.add(path)
	}
}

func (c *fieldChanges) compareElements(path string, was, is reflect.Value) {
	for n := range max(was.Len(), is.Len()) {
		at := fmt.Sprintf("%s[%d]", path, n)
		if n < was.Len() && n < is.Len() {
			c.compare(at, was.Index(n), is.Index(n))
		} else {
			c.add(at)
		}
	}
}

var jsonMarshaler = reflect.TypeFor[json.Marshaler]()

// isScalar reports whether a struct has a JSON form of its own, as times and
// quantities have, so that its fields are nobody's business.
func isScalar(t reflect.Type) bool {
	return t.Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler)
}

func sameScalar(was, is reflect.Value) bool {
	if was.CanInterface() {
		if a, ok := was.Interface().(apiresource.Quantity); ok {
			// Reading a quantity may change how it is represented: String remembers
			// what it returned. So may Cmp, but a and b are copies.
			b := is.Interface().(apiresource.Quantity)
			return a.Format == b.Format && a.Cmp(b) == 0
		}
	}
	var inside fieldChanges
	inside.compareStructs("", was, is)
	return len(inside.paths) == 0
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// pathOfKey returns the path of a map's entry. Maps that can hold anything stand
// for structs in unstructured objects, and their keys for the names of fields.
func pathOfKey(path string, of reflect.Type, key reflect.Value) string {
	switch {
	case key.Kind() != reflect.String:
		return fmt.Sprintf("%s[%v]", path, key)
	case of.Elem().Kind() == reflect.Interface && plainName.MatchString(key.String()):
		return join(path, key.String())
	}
	return fmt.Sprintf("%s[%q]", path, key.String())
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
