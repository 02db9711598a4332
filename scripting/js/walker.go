package js

import (
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"

	"github.com/weir-run/weir/engine/golayout"
	"github.com/weir-run/weir/scripting"
)

// walker measures everything that is reachable from a value of goja. It uses
// reflection on goja's types.
type walker struct {
	seen  map[unsafe.Pointer]struct{}
	texts map[*byte]int // counted bytes by the first byte
	todo  []place
	limit int
	size  int
}

// place is the address and the type of a value.
type place struct {
	shape *shape
	at    unsafe.Pointer
}

// shape contains a walker's information about a type.
type shape struct {
	typ    reflect.Type
	size   int
	parts  []part                             // parts that contain references
	direct bool                               // the interface contains the value itself, which is a pointer
	stop   bool                               // the target does not belong to the VM
	held   func(w *walker, at unsafe.Pointer) // adds the size of the value; nil: computed from its parts
}

// part is a pointer, a list, a text, an interface or a map in a type.
type part struct {
	offset uintptr
	kind   reflect.Kind
	elem   *shape       // of a pointer or a list
	typ    reflect.Type // of a map or an interface
	fixed  bool         // of an interface: must not be modified
}

// sized is implemented by host objects with their own memory, of which scripts
// can create any number.
type sized interface{ heldBytes() int }

// shapes is shared by all VMs.
var shapes = struct {
	sync.RWMutex
	of   map[reflect.Type]*shape
	word map[unsafe.Pointer]*shape // by the first word of an interface
}{of: map[reflect.Type]*shape{}, word: map[unsafe.Pointer]*shape{}}

func shapeOf(t reflect.Type) *shape {
	shapes.RLock()
	sh := shapes.of[t]
	shapes.RUnlock()
	if sh == nil {
		shapes.Lock()
		sh = newShape(t)
		shapes.Unlock()
	}
	return sh
}

// foreign reports whether a type belongs to a package, or to a part of goja,
// whose values VMs share.
func foreign(t reflect.Type) bool {
	pkg := t.PkgPath()
	switch {
	case pkg == "", pkg == "math/big", pkg == "regexp", pkg == "regexp/syntax", strings.HasSuffix(pkg, "/goja/unistring"):
		return false
	case strings.HasSuffix(pkg, "/goja"):
		return t.Name() == "Program" || t.Name() == "objectTemplate"
	}
	return true
}

// newShape must be called with shapes locked.
func newShape(t reflect.Type) *shape {
	if sh := shapes.of[t]; sh != nil {
		return sh
	}
	sh := &shape{typ: t, size: int(t.Size())}
	shapes.of[t] = sh // types may be recursive
	sh.direct = golayout.Direct(t)
	if sh.held = holds(t); sh.held != nil {
		return sh
	}
	if sh.stop = foreign(t); !sh.stop {
		sh.add(t, 0)
	}
	return sh
}

// holds returns a function that adds the size of a host value, or nil if it is
// computed from its parts.
func holds(t reflect.Type) func(w *walker, at unsafe.Pointer) {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[sized]()):
		return func(w *walker, at unsafe.Pointer) { w.size += reflect.NewAt(t, at).Interface().(sized).heldBytes() }
	case t == reflect.TypeFor[scripting.Object]():
		return func(w *walker, at unsafe.Pointer) {
			if re, ok := (*scripting.Object)(at).Data.(scripting.Pattern); ok {
				w.first(unsafe.Pointer(re), re.Bytes())
			}
		}
	case t == reflect.TypeFor[regexp2.Regexp]():
		return func(w *walker, at unsafe.Pointer) { w.size += regexp2Bytes * len((*regexp2.Regexp)(at).String()) }
	}
	return nil
}

// add adds the parts of a type at an offset.
func (sh *shape) add(t reflect.Type, at uintptr) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		sh.parts = append(sh.parts, part{offset: at, kind: t.Kind(), elem: newShape(t.Elem())})
	case reflect.String, reflect.Interface, reflect.Map:
		// VMs share the properties of a template literal's strings.
		sh.parts = append(sh.parts, part{offset: at, kind: t.Kind(), typ: t, fixed: sh.typ.Name() == "valueProperty"})
	case reflect.Struct:
		if foreign(t) {
			return
		}
		for i := range t.NumField() {
			if t.Field(i).Name == "interruptVal" { // why the VM was interrupted: the watchdog may write it concurrently
				continue
			}
			sh.add(t.Field(i).Type, at+t.Field(i).Offset)
		}
	case reflect.Array:
		for i := range t.Len() {
			sh.add(t.Elem(), at+uintptr(i)*t.Elem().Size())
		}
	}
}

// first reports whether p is seen for the first time. If so, it adds n.
func (w *walker) first(p unsafe.Pointer, n int) bool {
	if p == nil {
		return false
	}
	if _, ok := w.seen[p]; ok {
		return false
	}
	w.seen[p] = struct{}{}
	w.size += n
	return true
}

// text adds a string. Strings that begin at the same byte count once, with the
// length of the longest.
func (w *walker) text(s string) {
	if len(s) == 0 {
		return
	}
	p := unsafe.StringData(s)
	if n := w.texts[p]; n < len(s) {
		w.texts[p] = len(s)
		w.size += len(s) - n
	}
}

// char replaces a string of one ASCII character by one that does not share
// memory with a longer text, because goja evaluates line[i] without calling a
// function of weir. x is modified only if it belongs to the VM.
func (w *walker) char(x *golayout.Interface) (changed bool) {
	if x.Type != asciiTab || asciiTab == nil || x.Data == nil {
		return false
	}
	s := *(*string)(x.Data)
	if len(s) != 1 || unsafe.StringData(s) == unsafe.StringData(chars[s[0]]) {
		return false
	}
	x.Data = unsafe.Pointer(&chars[s[0]])
	return true
}

func (w *walker) queue(sh *shape, at unsafe.Pointer) {
	switch {
	case sh.held != nil:
		sh.held(w, at)
	case !sh.stop && len(sh.parts) > 0:
		w.todo = append(w.todo, place{sh, at})
	}
}

// visit adds everything that is reachable from a value.
func (w *walker) visit(sh *shape, at unsafe.Pointer) {
	for i := range sh.parts {
		p := &sh.parts[i]
		here := unsafe.Add(at, p.offset)
		switch p.kind {
		case reflect.Pointer:
			if to := *(*unsafe.Pointer)(here); w.first(to, p.elem.size) {
				w.queue(p.elem, to)
			}
		case reflect.String:
			w.text(*(*string)(here))
		case reflect.Slice:
			w.slice(p.elem, here)
		case reflect.Interface:
			if !p.fixed {
				w.char((*golayout.Interface)(here))
			}
			w.iface(p.typ, here)
		case reflect.Map:
			w.table(p.typ, here)
		}
		if w.size > w.limit {
			return
		}
	}
}

// jobSize is the approximate size of the closure of a pending job.
const jobSize = 500

// slice adds a list, including its unused capacity.
func (w *walker) slice(elem *shape, at unsafe.Pointer) {
	data, length, capacity := golayout.Slice(at)
	if !w.first(data, capacity*elem.size) {
		return
	}
	if elem.typ.Kind() == reflect.Func {
		w.size += jobSize * length
	}
	if elem.stop || len(elem.parts) == 0 {
		return
	}
	for i := range length {
		w.visit(elem, unsafe.Add(data, uintptr(i)*uintptr(elem.size)))
		if w.size > w.limit {
			return
		}
	}
}

// iface adds the value of an interface.
func (w *walker) iface(t reflect.Type, at unsafe.Pointer) {
	words := (*golayout.Interface)(at)
	if words.Type == nil || words.Data == nil {
		return
	}
	shapes.RLock()
	sh := shapes.word[words.Type]
	shapes.RUnlock()
	if sh == nil {
		sh = shapeOf(reflect.NewAt(t, at).Elem().Elem().Type())
		shapes.Lock()
		shapes.word[words.Type] = sh
		shapes.Unlock()
	}
	if sh.direct { // the second word is the value
		w.visit(sh, unsafe.Pointer(&words.Data))
		return
	}
	if w.first(words.Data, sh.size) {
		w.queue(sh, words.Data)
	}
}

// table adds a map.
func (w *walker) table(t reflect.Type, at unsafe.Pointer) {
	n := 0
	switch t {
	case reflect.TypeFor[map[unistring.String]goja.Value]():
		m := *(*map[unistring.String]goja.Value)(at)
		if n = len(m); n == 0 || !w.first(golayout.Map(at), 0) {
			return
		}
		for k, v := range m {
			w.text(string(k))
			if w.char((*golayout.Interface)(unsafe.Pointer(&v))) {
				m[k] = v
			}
			w.iface(valueType, unsafe.Pointer(&v))
		}
	default:
		m := reflect.NewAt(t, at).Elem()
		if n = m.Len(); n == 0 || !w.first(golayout.Map(at), 0) {
			return
		}
		if t.Elem().Kind() == reflect.Pointer && t.Elem().Elem().Name() == "mapEntry" {
			break // its entries are also in a list
		}
		key, elem := reflect.New(t.Key()), reflect.New(t.Elem())
		ks, es := shapeOf(t.Key()), shapeOf(t.Elem())
		for it := m.MapRange(); it.Next() && w.size <= w.limit; {
			key.Elem().SetIterKey(it)
			elem.Elem().SetIterValue(it)
			w.visit(ks, key.UnsafePointer())
			w.visit(es, elem.UnsafePointer())
		}
	}
	// Maps have groups of eight slots. They are at most seven eighths full, and
	// half of that after a split.
	slot := int(t.Key().Size()+t.Elem().Size()) + 1
	w.size += 48 + slot*max(8, n+n/2)
}

var valueType = reflect.TypeFor[goja.Value]()
